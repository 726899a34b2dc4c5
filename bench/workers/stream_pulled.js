// 1 MB in 16 chunks of 64 KB, each a fresh buffer, created as the client reads them.
export default {
  fetch() {
    let left = 16;
    return new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(64 * 1024).fill(46));
          left -= 1;
          if (left === 0) controller.close();
        },
      }),
    );
  },
};
