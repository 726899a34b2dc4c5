// Makes every object a thenable.
// expect: answer mine or exception
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    let stolen = 0;
    Object.prototype.then = function (resolve) {
      stolen++;
      delete Object.prototype.then;
      resolve(this);
    };
    return new Response("mine");
  },
};
