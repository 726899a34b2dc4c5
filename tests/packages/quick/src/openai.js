// `openai`: against a server of the tests
import OpenAI from "openai";

export default async ({ http }) => {
  const client = new OpenAI({ apiKey: "sk-1", baseURL: `${http}/openai/v1`, maxRetries: 0 });
  const messages = [{ role: "user", content: "hello" }];
  const answer = await client.chat.completions.create({ model: "gpt", messages });
  let text = "";
  for await (const chunk of await client.chat.completions.create({ model: "gpt", messages, stream: true })) text += chunk.choices[0]?.delta?.content ?? "";
  const file = await client.files.create({ file: await OpenAI.toFile(Buffer.from("a line"), "a.jsonl"), purpose: "batch" });
  const error = await client.models.retrieve("nothing").catch((error) => [error.name, error.status, error.message]);
  return [answer.choices[0].message.content, text, file.received, error];
};
