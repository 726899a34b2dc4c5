export default {
  async fetch(request) {
    return new Response(await request.arrayBuffer());
  },
};
