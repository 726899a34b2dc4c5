import { embedMany, generateText, jsonSchema, streamText, tool } from "ai";
import { createWorkersAI } from "workers-ai-provider";

const MODEL = "@cf/meta/llama-3.1-8b-instruct";

const weather = tool({
  description: "The weather of a city",
  inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
  execute: async ({ city }) => `sunny in ${city}`,
});

export default {
  async fetch(request, env) {
    const workersai = createWorkersAI({ binding: env.AI });
    const model = workersai(MODEL);
    switch (new URL(request.url).pathname) {
      case "/text": {
        const { text, usage, finishReason } = await generateText({ model, prompt: "Hi" });
        return Response.json([text, usage.totalTokens, finishReason]);
      }
      case "/stream": {
        const result = streamText({ model, prompt: "Hi" });
        const words = [];
        for await (const word of result.textStream) words.push(word);
        return Response.json([words, (await result.usage).totalTokens, await result.finishReason]);
      }
      case "/tool": {
        const { toolCalls, toolResults } = await generateText({ model, prompt: "Bern?", tools: { weather } });
        return Response.json([toolCalls[0].toolName, toolResults[0].output]);
      }
      default: {
        const { embeddings } = await embedMany({ model: workersai.textEmbedding("@cf/baai/bge-base-en-v1.5"), values: ["a", "bcd"] });
        return Response.json(embeddings);
      }
    }
  },
};
