export default {
	async fetch(req, env, ctx): Promise<Response> {
		await env.MY_QUEUE.send({ url: req.url, method: req.method, headers: Object.fromEntries(req.headers) });
		return new Response('Sent message to the queue');
	},
	async queue(batch, env): Promise<void> {
		for (const message of batch.messages) {
			console.log(`message ${message.id} processed: ${JSON.stringify(message.body)}`);
			message.ack();
		}
	},
	async scheduled(event, env, ctx): Promise<void> {
		console.log(`trigger fired at ${event.cron}`);
	},
} satisfies ExportedHandler<Env, Error>;
