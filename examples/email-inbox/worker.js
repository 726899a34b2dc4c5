// Keeps the subjects of received messages, and rejects messages without one.
export default {
  async email(message, env) {
    const subject = message.headers.get("subject");
    if (!subject) {
      message.setReject("Please write a subject.");
      return;
    }
    await env.INBOX.put(`${Date.now()}`, `${message.from}: ${subject}`);
  },

  async fetch(request, env) {
    const { keys } = await env.INBOX.list();
    const lines = await Promise.all(keys.map(({ name }) => env.INBOX.get(name)));
    return new Response(lines.map((line) => `${line}\n`).join(""));
  },
};
