// send_email

interface EmailAddress {
  name: string;
  email: string;
}

interface EmailAttachment {
  /** Bytes, or a text in base64. */
  content: string | ArrayBuffer | ArrayBufferView;
  filename: string;
  type: string;
  disposition?: "attachment" | "inline";
  /** For `cid:` links in the HTML. */
  contentId?: string;
}

interface EmailMessageBuilder {
  from: string | EmailAddress;
  to: string | EmailAddress | (string | EmailAddress)[];
  cc?: string | EmailAddress | (string | EmailAddress)[];
  bcc?: string | EmailAddress | (string | EmailAddress)[];
  replyTo?: string | EmailAddress;
  subject: string;
  text?: string;
  html?: string;
  headers?: Record<string, string>;
  attachments?: EmailAttachment[];
}

/** Sends email through the SMTP server that the operator of the node names. */
interface SendEmail {
  send(message: import("cloudflare:email").EmailMessage | EmailMessageBuilder): Promise<EmailSendResult>;
}
