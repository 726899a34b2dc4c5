// https://developers.cloudflare.com/workers/runtime-apis/nodejs/http/: the module `cloudflare:node`, which passes requests to
// servers of node:http.
import { codedError } from "./errors.js";
import { serve, serverOn } from "./http_server.js";

function requirePort(port) {
  if (!Number.isFinite(port) || port < 0 || port > 65535) throw new Error("Failed to determine port for server");
  return port;
}

// A number, { port }, or a server, which begins to listen if it does not yet.
function portOf(target) {
  if (typeof target === "number") return requirePort(target);
  if (target === undefined || target === null) throw new Error("Server descriptor cannot be null or undefined");
  const { port } = target;
  if ((port !== undefined && port !== null) || typeof target.listen !== "function") return requirePort(port);
  if (typeof target.address()?.port !== "number") target.listen();
  return requirePort(target.address()?.port);
}

export async function handleAsNodeRequest(target, request, env = undefined, ctx = undefined) {
  const port = requirePort(typeof target === "number" ? target : target?.port);
  const server = serverOn(port);
  if (server === undefined) {
    throw codedError(
      Error,
      "ERR_INVALID_ARG_VALUE",
      `Http server with port ${port} not found. This is likely a bug with your code. You should check if server.listen() was called with the same port (${port})`,
    );
  }
  return serve(server, request, env, ctx);
}

export function httpServerHandler(target) {
  const port = portOf(target);
  return {
    async fetch(request, env, ctx) {
      return handleAsNodeRequest(port, request, env, ctx);
    },
  };
}
