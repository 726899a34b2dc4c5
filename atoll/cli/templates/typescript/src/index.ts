import { greet } from "./greet.ts";

// `atoll types` writes this interface from atoll.toml, and the types of all globals.
interface Env {
  GREETING: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const name = new URL(request.url).searchParams.get("name") ?? "world";
    return Response.json({ message: greet(env.GREETING, name) });
  },
};
