// The hook that V8 calls for the stack of every error never ends, even when the platform reads the stack.
// expect: cpu
export default {
  fetch() {
    Error.prepareStackTrace = () => {
      for (;;);
    };
    throw new Error("never shown");
  },
};
