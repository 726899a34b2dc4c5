// Receives records of the calls of a worker, here of its own. Calls of the tail handler itself are not reported.
const outcomes = {};

export default {
  tail(events) {
    for (const { scriptName, outcome } of events) {
      const key = `${scriptName} ${outcome}`;
      outcomes[key] = (outcomes[key] ?? 0) + 1;
    }
  },

  fetch(request) {
    if (new URL(request.url).pathname === "/fail") throw new Error("as asked");
    return Response.json(outcomes);
  },
};
