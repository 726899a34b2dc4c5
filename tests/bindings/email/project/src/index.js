import { EmailMessage } from "cloudflare:email";
import { createMimeMessage } from "mimetext";
import PostalMime from "postal-mime";

export default {
  async email(message) {
    const { subject, text, attachments } = await PostalMime.parse(message.raw);
    const answer = createMimeMessage();
    answer.setHeader("In-Reply-To", message.headers.get("Message-ID"));
    answer.setSender({ name: "Inbox", addr: message.to });
    answer.setRecipient(message.from);
    answer.setSubject(`Re: ${subject}`);
    answer.addMessage({ contentType: "text/plain", data: `You wrote ${text.trim()} with ${attachments.length} files` });
    await message.reply(new EmailMessage(message.to, message.from, answer.asRaw()));
  },
};
