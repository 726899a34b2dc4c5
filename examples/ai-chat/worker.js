// Answers a question with a model, word by word.
const MODEL = "@cf/meta/llama-3.1-8b-instruct";

export default {
  async fetch(request, env) {
    const question = new URL(request.url).searchParams.get("q") ?? "What is an atoll?";
    const messages = [
      { role: "system", content: "Answer in one sentence." },
      { role: "user", content: question },
    ];
    try {
      const stream = await env.AI.run(MODEL, { messages, stream: true });
      return new Response(stream, { headers: { "content-type": "text/event-stream" } });
    } catch (error) {
      return new Response(`${error.name}: ${error.message}\n`, { status: 502 });
    }
  },
};
