// Streamed answers: OpenAI's events come in, those of Workers AI go out. And the errors of both.
import { defineOp } from "#web/internal/ops.js";
import { TextDecoder } from "#web/encoding/text_decoder.js";
import { encodeText } from "#web/internal/text.js";
import { ReadableStream } from "#web/streams/streams.js";

const read = defineOp("ai.read");

export class InferenceUpstreamError extends Error {
  #fault;

  constructor(fault) {
    super(`${fault.code}: ${fault.text}`);
    this.name = "InferenceUpstreamError";
    this.#fault = fault;
  }

  get status() {
    return this.#fault.status;
  }

  /** The answer with `returnRawResponse`. */
  get answer() {
    const { code, text } = this.#fault;
    return { errors: [{ message: `AiError: ${text}`, code }], success: false, result: {}, messages: [], internalCode: code, description: text, name: this.name };
  }
}

/** A stream of `data: {"response": …}` and, last, `data: [DONE]`. */
export function eventsOf(binding, stream) {
  const decoder = new TextDecoder();
  let rest = "";
  let isDone = false;
  return new ReadableStream(
    {
      type: "bytes",
      async pull(controller) {
        for (;;) {
          const { meta, body } = await read({ binding, stream });
          if (meta.fault !== undefined) throw new InferenceUpstreamError(meta.fault);
          const lines = (rest + decoder.decode(body, { stream: body.length > 0 })).split("\n");
          rest = body.length > 0 ? lines.pop() : "";
          let text = "";
          for (const line of lines) {
            if (isDone || !line.startsWith("data:")) continue;
            const data = line.slice(5).trim();
            if (data === "[DONE]") isDone = true;
            text += data === "[DONE]" ? "data: [DONE]\n\n" : eventOf(JSON.parse(data));
          }
          if (text !== "") controller.enqueue(encodeText(text));
          if (body.length === 0) {
            controller.close();
            controller.byobRequest?.respond(0);
            return;
          }
          if (text !== "") return;
        }
      },
      cancel() {
        void read({ binding, stream, cancel: true }).catch(() => {});
      },
    },
    { highWaterMark: 0 },
  );
}

/** One event of the server as events of Workers AI. */
function eventOf(chunk) {
  if (chunk.error !== undefined && chunk.error !== null) {
    throw new InferenceUpstreamError({ code: 3043, text: "Internal server error", status: 500 });
  }
  const choice = chunk.choices?.[0];
  const delta = choice?.delta;
  const event = { response: delta?.content ?? choice?.text ?? "" };
  const reasoning = delta?.reasoning_content ?? delta?.reasoning;
  if (reasoning) event.choices = [{ index: 0, delta: { reasoning_content: reasoning } }];
  if (delta?.tool_calls) event.tool_calls = delta.tool_calls;
  if (choice?.finish_reason) event.finish_reason = choice.finish_reason;
  if (chunk.usage) event.usage = chunk.usage;
  if (event.response === "" && Object.keys(event).length === 1) return "";
  return `data: ${JSON.stringify(event)}\n\n`;
}
