// Measures time with every available means.
// expect: answer true
// limits: cpu_ms=1000
export default {
  async fetch(request, env, ctx) {
    const read = () => [Date.now(), +new Date(), performance.now(), new Event("x").timeStamp, new File([], "x").lastModified, Date()].join();
    const before = read();
    for (let i = 0; i < 2e7; i++);
    return new Response(String(read() === before));
  },
};
