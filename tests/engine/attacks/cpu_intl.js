// Creates date formatters until the time is up.
// expect: cpu or memory
export default {
  async fetch(request, env, ctx) {
    for (let i = 0; ; i++) new Intl.DateTimeFormat("de", { timeZone: "Europe/Berlin" }).format(i * 1e9);
  },
};
