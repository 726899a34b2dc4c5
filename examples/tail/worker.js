// Is told what happens in a worker, here in itself: calls of its own tail handler are told to nobody.
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
