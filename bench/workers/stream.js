// 1 MB in 64 chunks, created as the client reads them.
const chunk = new Uint8Array(16 * 1024).fill(46);

export default {
  fetch() {
    let left = 64;
    return new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(chunk.slice());
          left -= 1;
          if (left === 0) controller.close();
        },
      }),
    );
  },
};
