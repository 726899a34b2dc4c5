// Unhandled errors, each with a stack hook that computes. They are reported after the call has answered.
// expect: answer sent or cpu
// outcome: exceededCpu
export default {
  fetch(request, env, ctx) {
    Error.prepareStackTrace = (error) => {
      for (;;);
    };
    for (let i = 0; i < 10_000; i++) Promise.reject(new Error(`late ${i}`));
    ctx.waitUntil(new Promise((resolve, reject) => setTimeout(() => reject(new Error("later")), 5)));
    return new Response("sent");
  },
};
