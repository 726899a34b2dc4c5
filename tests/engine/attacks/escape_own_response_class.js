// A subclass that pretends to be a response.
// expect: answer fake or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    class Fake extends Response {
      get status() {
        return 99999;
      }
      get headers() {
        throw new Error("no headers");
      }
    }
    return new Fake("fake");
  },
};
