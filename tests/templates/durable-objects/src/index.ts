import { DurableObject } from "cloudflare:workers";

export class MyDurableObject extends DurableObject<Env> {
	constructor(ctx: DurableObjectState, env: Env) {
		super(ctx, env);
	}

	async sayHello(name: string): Promise<string> {
		const result = this.ctx.storage.sql.exec<{ greeting: string }>("SELECT 'Hello, World!' as greeting").one();
		return `${result.greeting} ${name}`;
	}
}

export default {
	async fetch(request, env, ctx): Promise<Response> {
		const stub = env.MY_DURABLE_OBJECT.getByName("foo");
		return new Response(await stub.sayHello("world"));
	},
} satisfies ExportedHandler<Env>;
