enum Order { Up = 'up', Down = 'down' }

interface Options { readonly: boolean; cors: boolean; order?: Order }

export function Explorer(options: Options) {
  return {
    async fetch(request: Request, env: { bucket: R2Bucket }, ctx: ExecutionContext) {
      const { pathname } = new URL(request.url);
      if (request.method === 'PUT' && !options.readonly) {
        const object = await env.bucket.put(pathname.slice(5), request.body, { httpMetadata: request.headers });
        return Response.json({ key: object.key, order: options.order ?? Order.Up });
      }
      const listed = await env.bucket.list({ include: ['httpMetadata', 'customMetadata'] });
      return Response.json(listed.objects.map((object) => object.key));
    },
    async email(event: unknown) {},
  };
}
