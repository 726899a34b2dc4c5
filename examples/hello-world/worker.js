// The smallest worker: every request gets the same answer.
export default {
  fetch() {
    return new Response("Hello World!\n");
  },
};
