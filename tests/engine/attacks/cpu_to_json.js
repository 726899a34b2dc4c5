// toJSON that returns another object with toJSON.
// expect: cpu or exception
export default {
  async fetch(request, env, ctx) {
    const deeper = () => ({ toJSON: () => ({ next: deeper() }) });
    return Response.json(deeper());
  },
};
