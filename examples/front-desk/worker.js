// Calls another worker of this node, ../greeter, by methods, stubs and fetch. No socket is used.
export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/raw") return env.GREETER.fetch("http://greeter/desk");
    if (pathname === "/all") return greetAll(searchParams.getAll("name"), env);
    if (pathname === "/talk") return talk(searchParams.get("name") ?? "guest", env);
    return new Response(`${await env.GREETER.greet(pathname.slice(1) || "guest")} Welcome.\n`);
  },
};

/** The greeter calls our function. */
async function greetAll(names, env) {
  const lines = [];
  await env.GREETER.greetAll(names, (line) => void lines.push(line));
  return new Response(`${lines.join("\n")}\n`);
}

/** The greeter keeps the conversation, we hold a stub of it until the end of this function. */
async function talk(name, env) {
  using conversation = await env.GREETER.converse(name);
  const lines = [await conversation.hello(), await conversation.hello()];
  const pipelined = await env.GREETER.converse(name).hello(); // one round trip for both calls
  return new Response(`${lines.join("\n")}\n${pipelined}\ngreeted ${await conversation.said} times\n`);
}
