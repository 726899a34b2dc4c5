// Listeners for rejections and errors that reject and throw again, each a little slow.
// expect: answer sent or cpu
export default {
  fetch() {
    const work = () => {
      for (let i = 0; i < 1e6; i++);
      Promise.reject(new Error("again"));
      reportError(new Error("and again"));
    };
    addEventListener("unhandledrejection", work);
    addEventListener("error", work);
    Promise.reject(1);
    return new Response("sent");
  },
};
