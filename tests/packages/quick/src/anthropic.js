// `@anthropic-ai/sdk`: against a server of the tests
import Anthropic from "@anthropic-ai/sdk";

export default async ({ http }) => {
  const client = new Anthropic({ apiKey: "key", baseURL: `${http}/anthropic`, maxRetries: 0 });
  const request = { model: "claude", max_tokens: 10, messages: [{ role: "user", content: "hello" }] };
  const answer = await client.messages.create(request);
  const heard = [];
  const stream = client.messages.stream(request).on("text", (text) => heard.push(text));
  const final = await stream.finalMessage();
  const error = await client.models.retrieve("nothing").catch((error) => [error.name, error.status, error.message]);
  return [answer.content, heard, final.content, final.usage, error];
};
