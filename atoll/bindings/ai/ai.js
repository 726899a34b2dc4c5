// https://developers.cloudflare.com/workers-ai/configuration/bindings/: models on a server that the operator of the node names.
// The other half is ops.py.
import { defineBinding } from "#web/internal/bindings.js";
import { defineOp } from "#web/internal/ops.js";
import { decodeText, encodeText } from "#web/internal/text.js";
import { Response } from "#web/fetch/response.js";
import { isReadableStream } from "#web/streams/streams.js";
import { eventsOf, InferenceUpstreamError } from "./ai_stream.js";
import { embeddings, generated, requestOf } from "./ai_shapes.js";

const run = defineOp("ai.run");
const models = defineOp("ai.models");

/** What an answer of Python means: an exception, or nothing. */
function check(meta) {
  if (meta.fault !== undefined) throw new InferenceUpstreamError(meta.fault);
}

function missing(what) {
  return new Error(`env.AI.${what} is a service of Cloudflare, which Atoll does not have. env.AI.run() works.`);
}

export class Ai {
  #name;

  constructor(name) {
    this.#name = name;
    this.aiGatewayLogId = null;
    this.lastRequestId = null;
  }

  async run(model, inputs, options = undefined) {
    const raw = Boolean(options?.returnRawResponse);
    try {
      const result = await this.#result(`${model}`, inputs);
      if (!raw) return result;
      if (isReadableStream(result)) return new Response(result, { headers: { "content-type": "text/event-stream" } });
      return new Response(JSON.stringify(result), { headers: { "content-type": "application/json" } });
    } catch (error) {
      if (!raw || !(error instanceof InferenceUpstreamError)) throw error;
      return new Response(JSON.stringify(error.answer), { status: error.status, headers: { "content-type": "application/json" } });
    }
  }

  async #result(model, inputs) {
    const { task, body, isStream } = requestOf(inputs);
    const { meta, body: answer } = await run({ binding: this.#name, model, task, stream: isStream }, encodeText(JSON.stringify(body)));
    check(meta);
    if (isStream) return eventsOf(this.#name, meta.stream);
    const found = JSON.parse(decodeText(answer));
    return task === "embedding" ? embeddings(found) : generated(found, body.response_format !== undefined);
  }

  async models(params = undefined) {
    const { meta } = await models({ binding: this.#name });
    check(meta);
    const wanted = `${params?.search ?? ""}`.toLowerCase();
    return meta.models
      .filter((name) => name.toLowerCase().includes(wanted))
      .map((name) => ({ id: name, source: 1, name, description: "", task: { id: "", name: "", description: "" }, tags: [], properties: [] }));
  }

  gateway() {
    throw missing("gateway()");
  }

  autorag() {
    throw missing("autorag()");
  }

  aiSearch() {
    throw missing("aiSearch()");
  }

  toMarkdown() {
    throw missing("toMarkdown()");
  }

  async fetch() {
    throw missing("fetch()");
  }
}

defineBinding("ai", Ai);
