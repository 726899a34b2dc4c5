// The hook that V8 calls for the stack of every error never ends, also when it is we who ask for the stack.
// expect: cpu
export default {
  fetch() {
    Error.prepareStackTrace = () => {
      for (;;);
    };
    throw new Error("never shown");
  },
};
