export default { fetch: async (request: Request, env: Env) => Response.json(await env.VECTORIZE.query([1, 2])) };
