// Answers at once and does the work later: one worker is both the producer and the consumer of its messages.
export default {
  async fetch(request, env) {
    if (request.method !== "POST") return new Response("POST a word here; it is handled later.\n");
    await env.JOBS.send({ word: await request.text(), at: Date.now() });
    return new Response("accepted\n", { status: 202 });
  },

  async queue(batch) {
    for (const message of batch.messages) {
      if (message.body.word === "fail") message.retry({ delaySeconds: 1 });
      else console.log(`handled ${message.body.word} (attempt ${message.attempts})`);
    }
  },
};
