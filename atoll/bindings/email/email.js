// The email event, and what its handler does with the message. The other half is ops.py.
// https://developers.cloudflare.com/email-routing/email-workers/runtime-api/
import { defineEvent } from "#web/internal/events.js";
import { lazy } from "#web/internal/lazy.js";
import { defineOp } from "#web/internal/ops.js";
import { Response } from "#web/fetch/response.js";
import { callHandler } from "#web/worker/events.js";

const forward = defineOp("email.forward");
const reply = defineOp("email.reply");

class ForwardableEmailMessage {
  #meta;
  #body;
  #raw;
  #headers;
  #reject = null;

  constructor(meta, body) {
    this.#meta = meta;
    this.#body = body;
  }

  get from() {
    return this.#meta.from;
  }

  get to() {
    return this.#meta.to;
  }

  get headers() {
    return (this.#headers ??= lazy("email/mime_reader.js").headersOf(this.#body));
  }

  get raw() {
    return (this.#raw ??= new Response(this.#body).body);
  }

  get rawSize() {
    return this.#body.length;
  }

  setReject(reason) {
    this.#reject = `${reason}`;
  }

  async forward(rcptTo, headers = undefined) {
    const given = headers === undefined ? [] : [...lazy("email/mime_reader.js").toHeaders(headers)];
    const { meta } = await forward({ key: this.#meta.key, to: `${rcptTo}`, headers: given });
    return lazy("email/email_message.js").resultOf(meta);
  }

  async reply(message) {
    const emails = lazy("email/email_message.js");
    const { from, recipients, bytes } = await emails.readMessage(message, this.#replyDefaults());
    const { meta } = await reply({ key: this.#meta.key, from, to: recipients[0] }, bytes);
    return emails.resultOf(meta);
  }

  #replyDefaults() {
    return { to: this.#meta.from, headers: { "In-Reply-To": this.headers.get("message-id") ?? "" } };
  }

  static verdict(message) {
    return { reject: message.#reject };
  }
}

const verdict = ForwardableEmailMessage.verdict;
delete ForwardableEmailMessage.verdict;

defineEvent("email", async (target, meta, body, call) => {
  const message = new ForwardableEmailMessage(meta, body ?? new Uint8Array());
  await callHandler(target, "email", message, call);
  return verdict(message);
});
