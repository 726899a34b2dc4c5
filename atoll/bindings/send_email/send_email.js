// https://developers.cloudflare.com/email-service/api/send-emails/workers-api/: sends email through the SMTP server that the operator
// of the node names. The other half is ops.py.
import { defineBinding } from "#web/internal/bindings.js";
import { lazy } from "#web/internal/lazy.js";
import { defineOp } from "#web/internal/ops.js";

const send = defineOp("send_email.send");

export class SendEmail {
  #name;

  constructor(name) {
    this.#name = name;
  }

  /** Takes an EmailMessage of cloudflare:email, or the fields of a message. */
  async send(message) {
    const emails = lazy("email/email_message.js");
    const { from, recipients, bytes } = await emails.readMessage(message, {});
    const { meta } = await send({ binding: this.#name, from, to: recipients }, bytes);
    return emails.resultOf(meta);
  }
}

defineBinding("send_email", SendEmail);
