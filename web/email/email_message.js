// The module cloudflare:email, and messages on their way to Python.
// https://developers.cloudflare.com/email-routing/email-workers/send-email-workers/
import { Response } from "../fetch/response.js";
import { buildMessage } from "./mime_writer.js";

export class EmailMessage {
  #from;
  #to;
  #raw;

  constructor(from, to, raw) {
    if (arguments.length < 3) throw new TypeError("EmailMessage needs from, to and raw.");
    this.#from = `${from}`;
    this.#to = `${to}`;
    this.#raw = raw;
  }

  get from() {
    return this.#from;
  }

  get to() {
    return this.#to;
  }

  /** Undefined for anything that is no EmailMessage. */
  static contentOf(value) {
    return #raw in value ? { from: value.#from, recipients: [value.#to], raw: value.#raw } : undefined;
  }
}

const { contentOf } = EmailMessage;
delete EmailMessage.contentOf;

/** { from, recipients, bytes } of an EmailMessage, or of an object with the fields of a message; `defaults` are for the latter. */
export async function readMessage(message, defaults) {
  if (typeof message !== "object" || message === null) throw new TypeError("send() takes an EmailMessage or an object.");
  const content = contentOf(message);
  if (content === undefined) return buildMessage({ ...defaults, ...message, headers: { ...defaults.headers, ...message.headers } });
  const { from, recipients, raw } = content;
  return { from, recipients, bytes: new Uint8Array(await new Response(raw).arrayBuffer()) };
}

/** The result of an op, or its exception. */
export function resultOf({ fault, messageId }) {
  if (fault !== undefined) throw Object.assign(new Error(fault.text), { code: fault.code });
  return { messageId };
}
