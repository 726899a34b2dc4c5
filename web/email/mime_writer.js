// Writes a message from its fields: https://datatracker.ietf.org/doc/html/rfc5322 and 2045 to 2047.
import { bytesOf, isBufferSource } from "../internal/webidl.js";
import { encodeText } from "../internal/text.js";
import { atob, btoa } from "../encoding/base64.js";
import { native } from "../internal/native.js";

const PLAIN = /^[\x20-\x7e]*$/;
const NAME = /^[!-9;-~]{1,200}$/;
// These have fields of their own, or only servers write them.
const RESERVED = new Set([
  "from", "to", "cc", "bcc", "subject", "reply-to", "sender", "date", "mime-version", "content-type", "content-transfer-encoding",
  "content-disposition", "received", "return-path", "dkim-signature", "resent-from", "resent-sender",
]);
const WORD = 42; // bytes of an encoded word before base64
const LINE = 57; // bytes of a line before base64

function wrong(text) {
  return Object.assign(new Error(text), { code: "E_VALIDATION_ERROR" });
}

function checkLine(what, text) {
  if (/[\0-\x08\x0a-\x1f\x7f]/.test(text)) throw wrong(`The ${what} has a line end or another control character.`);
  return text;
}

function base64(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += LINE) lines.push(btoa(String.fromCharCode(...bytes.subarray(at, at + LINE))));
  return lines.join("\r\n");
}

/** RFC 2047: text as ASCII, in words that do not cut a letter. */
function encoded(text) {
  if (PLAIN.test(text) && !text.includes("=?")) return text;
  const words = [];
  let part = "";
  for (const letter of text) {
    if (encodeText(part + letter).length > WORD) {
      words.push(part);
      part = "";
    }
    part += letter;
  }
  words.push(part);
  return words.map((word) => `=?utf-8?B?${base64(encodeText(word))}?=`).join("\r\n ");
}

/** { name, email } of a text such as `Ada <ada@example.com>`, or of such an object. */
function addressOf(what, value) {
  if (value === undefined || value === null) throw Object.assign(new Error(`The field ${what} is missing.`), { code: "E_FIELD_MISSING" });
  const isText = typeof value === "string";
  const at = isText ? value.lastIndexOf("<") : -1;
  const behindName = at >= 0 && value.trimEnd().endsWith(">");
  const email = isText ? (behindName ? value.trimEnd().slice(at + 1, -1) : value).trim() : `${value.email ?? value.address}`;
  const name = isText ? (behindName ? value.slice(0, at).trim().replace(/^"(.*)"$/, "$1") : "") : `${value.name ?? ""}`;
  if (!/^[^\s<>,;:"()@]+@[^\s<>,;:"()@]+$/.test(email)) throw wrong(`The field ${what} has no email address.`);
  return { name: checkLine(`name in ${what}`, name), email };
}

function addressesOf(what, value) {
  if (value === undefined || value === null) return [];
  return (Array.isArray(value) ? value : [value]).map((each) => addressOf(what, each));
}

function shown({ name, email }) {
  if (name === "") return email;
  return `${PLAIN.test(name) && !name.includes("=?") ? `"${name.replace(/[\\"]/g, "\\$&")}"` : encoded(name)} <${email}>`;
}

function textPart(type, text) {
  const bytes = encodeText(`${text}`.replace(/\r\n?|\n/g, "\r\n"));
  return `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(bytes)}`;
}

function several(kind, parts) {
  if (parts.length === 1) return parts[0];
  const boundary = `=_${native.randomUUID()}`;
  const inner = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("");
  return `Content-Type: multipart/${kind}; boundary="${boundary}"\r\n\r\n${inner}--${boundary}--`;
}

function attachmentPart({ content, filename, type, disposition = "attachment", contentId }) {
  const kind = `${type ?? "application/octet-stream"}`;
  if (!/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(kind)) throw wrong("The type of an attachment is invalid.");
  if (disposition !== "attachment" && disposition !== "inline") throw wrong("The disposition of an attachment is invalid.");
  const name = checkLine("name of an attachment", `${filename ?? "attachment"}`);
  const star = PLAIN.test(name) ? `filename="${name.replace(/[\\"]/g, "\\$&")}"` : `filename*=utf-8''${encodeURIComponent(name).replace(/['()*]/g, escaped)}`;
  const id = contentId === undefined ? "" : `Content-ID: <${checkLine("contentId", `${contentId}`).replace(/[<>]/g, "")}>\r\n`;
  return `Content-Type: ${kind}\r\nContent-Transfer-Encoding: base64\r\n${id}Content-Disposition: ${disposition}; ${star}\r\n\r\n${contentOf(content)}`;
}

function escaped(letter) {
  return `%${letter.charCodeAt(0).toString(16)}`;
}

/** A text is in base64 already. */
function contentOf(content) {
  if (isBufferSource(content)) return base64(bytesOf(content));
  try {
    const bytes = atob(`${content}`);
    return base64(Uint8Array.from(bytes, (letter) => letter.charCodeAt(0)));
  } catch {
    throw wrong("The content of an attachment is a text that is not in base64.");
  }
}

function headerLines(headers, messageId) {
  const lines = [];
  let found = messageId;
  for (const name of Object.keys(headers ?? {})) {
    const value = checkLine(`header ${name}`, `${headers[name]}`);
    if (!NAME.test(name) || RESERVED.has(name.toLowerCase())) throw wrong(`The header ${JSON.stringify(name)} cannot be set.`);
    if (name.toLowerCase() === "message-id") found = value;
    else lines.push(`${name}: ${encoded(value)}`);
  }
  return { lines, messageId: found };
}

/** { from, recipients, bytes } of the fields of a message. */
export function buildMessage({ from, to, cc, bcc, replyTo, subject, text, html, headers, attachments }) {
  const sender = addressOf("from", from);
  const [direct, copies, hidden] = [addressesOf("to", to), addressesOf("cc", cc), addressesOf("bcc", bcc)];
  if (direct.length === 0) throw Object.assign(new Error("The field to is missing."), { code: "E_FIELD_MISSING" });
  const bodies = [];
  if (text !== undefined && text !== null) bodies.push(textPart("text/plain", text));
  if (html !== undefined && html !== null) bodies.push(textPart("text/html", html));
  if (bodies.length === 0) throw Object.assign(new Error("The message has neither text nor html."), { code: "E_FIELD_MISSING" });
  const files = (attachments ?? []).map((each) => ({ isInline: each.disposition === "inline", part: attachmentPart(each) }));
  const inline = files.filter((each) => each.isInline).map((each) => each.part);
  const others = files.filter((each) => !each.isInline).map((each) => each.part);
  const body = several("mixed", [several("related", [several("alternative", bodies), ...inline]), ...others]);
  const more = headerLines(headers, `<${native.randomUUID()}@${sender.email.slice(sender.email.lastIndexOf("@") + 1)}>`);
  const lines = [
    `From: ${shown(sender)}`,
    `To: ${direct.map(shown).join(",\r\n ")}`,
    ...(copies.length > 0 ? [`Cc: ${copies.map(shown).join(",\r\n ")}`] : []),
    ...(replyTo === undefined || replyTo === null ? [] : [`Reply-To: ${shown(addressOf("replyTo", replyTo))}`]),
    `Subject: ${encoded(checkLine("subject", `${subject ?? ""}`))}`,
    `Date: ${new Date().toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: ${more.messageId}`,
    ...more.lines,
    "MIME-Version: 1.0",
  ];
  const recipients = [...direct, ...copies, ...hidden].map((each) => each.email);
  return { from: sender.email, recipients, bytes: encodeText(`${lines.join("\r\n")}\r\n${body}\r\n`) };
}
