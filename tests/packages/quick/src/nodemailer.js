// `nodemailer`: sends to an SMTP server
import nodemailer from "nodemailer";

export default async ({ smtp }) => {
  const transport = nodemailer.createTransport({ host: "127.0.0.1", port: smtp.port, secure: false, ignoreTLS: true, auth: { user: "ada", pass: "secret" } });
  const ready = await transport.verify();
  const sent = await transport.sendMail({
    from: '"Ada" <ada@example.com>',
    to: "bob@example.com, eve@example.com",
    subject: "Grüße",
    text: "plain 日本",
    html: "<b>bold</b>",
    attachments: [{ filename: "a.txt", content: "attached" }],
    date: new Date(0),
    messageId: "<1@example.com>",
  });
  const wrong = nodemailer.createTransport({ host: "127.0.0.1", port: smtp.port, ignoreTLS: true, auth: { user: "ada", pass: "wrong" } });
  const refused = await wrong.sendMail({ from: "a@example.com", to: "b@example.com", text: "x" }).catch((error) => [error.code, error.responseCode]);
  return [ready, sent.accepted, sent.rejected, sent.envelope, sent.messageId, sent.response, refused];
};
