// A request to another worker of this engine, as the engine passes it on: the same head that Python would write
// (messages.py, inner_head).
import { callOf } from "#web/internal/async_context.js";
import { native } from "#web/internal/native.js";
import { callInside } from "#web/internal/ops.js";
import { runningCall } from "#web/worker/call.js";

// Headers about the connection or the framing.
const NOT_FORWARDED = new Set([
  "host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "transfer-encoding", "te", "trailer",
  "upgrade", "expect", "content-length", "http2-settings", "cf-worker", "cdn-loop", "cf-ew-via",
]);
const AUTHORITY = /^https?:\/\/([a-z0-9.:[\]-]+)(?=[/?])/;
const REASON = /^(content-length: \d+\r\n)? (.*)\r\n/;
const CAME_OVER_NETWORKS = /\ncdn-loop:/i;

/** Sends a request whose body is complete, by its way in the engine or, if that cannot be, by `op`. Resolves to its reply. */
export function startInside(op, meta, pairs, bytes, way) {
  const found = AUTHORITY.exec(meta.url);
  if (found === null || !mayStayInside()) return op(meta, bytes);
  let lines = `host: ${found[1]}\r\n`;
  if (meta.told !== undefined) lines += `cf-atoll-cf: ${meta.told}\r\n`;
  let hasAccept = false;
  let hasAgent = false;
  let hasEncoding = false;
  let hasRange = false;
  for (let i = 0; i < pairs.length; i += 2) {
    const name = pairs[i];
    if (NOT_FORWARDED.has(name) || name.startsWith("cf-atoll-")) continue;
    if (name === "accept") hasAccept = true;
    else if (name === "user-agent") hasAgent = true;
    else if (name === "accept-encoding") hasEncoding = true;
    else if (name === "range") hasRange = true;
    lines += `${name}: ${pairs[i + 1]}\r\n`;
  }
  if (!hasAccept) lines += "accept: */*\r\n";
  if (!hasAgent) lines += "user-agent: Atoll\r\n";
  if (hasRange && !hasEncoding) lines += "accept-encoding: identity\r\n";
  return callInside(op, meta, bytes, way, false, `${meta.method} ${meta.url}`, lines).then(asReply);
}

/** Python passes on which other networks a request came through. */
function mayStayInside() {
  const call = runningCall(callOf(native.getAsyncContext()));
  if (call === undefined) return false;
  call.isFromNetworks ??= CAME_OVER_NETWORKS.test(call.head);
  return !call.isFromNetworks;
}

/** The reply of fetch.start. */
function asReply(reply) {
  if (reply.meta !== undefined) return reply;
  const { status, head, body } = reply;
  const found = head.startsWith(" ") || head.startsWith("content-length: ") ? REASON.exec(head) : null;
  const lines = found === null ? head : (found[1] ?? "") + head.slice(found[0].length);
  return { meta: { status, reason: found === null ? "" : found[2], head: lines, coding: "", ended: true }, body };
}
