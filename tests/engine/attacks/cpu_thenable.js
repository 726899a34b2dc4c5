// A handler's result whose then() does not return.
// expect: cpu
export default {
  fetch: () => ({
    then() {
      for (;;);
    },
  }),
};
