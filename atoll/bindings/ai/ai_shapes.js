// The inputs and results of Workers AI in the form of OpenAI's API, and back.
import { InferenceUpstreamError } from "./ai_stream.js";

const OTHER_TASKS = ["image", "audio", "source_lang", "target_lang", "input_text", "contexts", "query", "speaker", "input"];

function invalid(text) {
  return new InferenceUpstreamError({ code: 5006, text: `Error: ${text}`, status: 400 });
}

/** { task, body, isStream }: what to send for the inputs of run(). */
export function requestOf(inputs) {
  if (typeof inputs !== "object" || inputs === null) throw invalid("inputs must be an object");
  const { messages, prompt, text, raw, stream, tools, response_format: format } = inputs;
  if (messages === undefined && prompt === undefined) return embeddingOf(inputs, text);
  if (messages !== undefined && prompt !== undefined) throw invalid("prompt and messages are mutually exclusive");
  if (inputs.image !== undefined || inputs.audio !== undefined) throw otherTask("image or audio: give images as `image_url` in `messages`");
  const body = { ...inputs };
  delete body.prompt;
  if (tools !== undefined) body.tools = tools?.map(toolOf);
  if (format !== undefined) body.response_format = formatOf(format);
  const isStream = Boolean(stream);
  if (prompt !== undefined && raw) return { task: "completion", body: { ...body, prompt: `${prompt}` }, isStream };
  if (prompt !== undefined) body.messages = [{ role: "user", content: `${prompt}` }];
  return { task: "chat", body, isStream };
}

function embeddingOf(inputs, text) {
  const other = OTHER_TASKS.find((name) => name in inputs);
  if (other !== undefined) throw otherTask(`\`${other}\``);
  if (text === undefined) {
    throw invalid("oneOf at '/' not met, 0 matches: required properties at '/' are 'prompt', required properties at '/' are 'messages'");
  }
  return { task: "embedding", body: { input: text, dimensions: inputs.dimensions }, isStream: false };
}

function otherTask(what) {
  return invalid(`Atoll runs text generation and embeddings only, which do not take ${what}`);
}

/** Workers AI takes a function alone, too. */
function toolOf(tool) {
  return typeof tool === "object" && tool !== null && tool.function === undefined && tool.name !== undefined
    ? { type: "function", function: { name: tool.name, description: tool.description, parameters: tool.parameters } }
    : tool;
}

/** The schema of Workers AI is not in a wrapper. */
function formatOf(format) {
  const schema = format?.json_schema;
  if (format?.type !== "json_schema" || typeof schema !== "object" || schema === null) return format;
  return typeof schema.schema === "object" ? format : { type: "json_schema", json_schema: { name: "response", schema } };
}

/** The result of a text generation: that of Workers AI, with `choices` as its newer models have them. */
export function generated(answer, isJson) {
  const choice = answer.choices?.[0];
  const text = choice?.message?.content ?? choice?.text ?? "";
  const calls = choice?.message?.tool_calls?.map(callOf) ?? [];
  return { ...answer, response: isJson ? parsed(text) : text, tool_calls: calls, usage: answer.usage };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A tool call in both forms: `name` with an object, and OpenAI's `function` with a text. */
function callOf(call) {
  const { name, arguments: text } = call.function ?? {};
  return { ...call, name, arguments: typeof text === "string" ? parsed(text || "{}") : text };
}

export function embeddings(answer) {
  const data = (answer.data ?? []).map((each) => each.embedding);
  return { shape: [data.length, data[0]?.length ?? 0], data, usage: answer.usage };
}
