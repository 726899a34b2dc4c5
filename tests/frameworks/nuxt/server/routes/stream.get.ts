export default defineEventHandler((event) => {
  setHeader(event, "Content-Type", "text/html");
  return new ReadableStream({
    async start(controller) {
      const encoder = new TextEncoder();
      controller.enqueue(encoder.encode("<p>early part</p>"));
      await new Promise((resolve) => setTimeout(resolve, 100));
      controller.enqueue(encoder.encode("<p>late part</p>"));
      controller.close();
    },
  });
});
