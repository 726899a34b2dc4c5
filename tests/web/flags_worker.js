// The worker of test_flags.py: what it sees of a compatibility flag.
import { env as imported } from "cloudflare:workers";
const name = async (steps) => { try { await steps(); return "ok"; } catch (error) { return error.name; } };
const value = async (steps) => { try { return await steps(); } catch (error) { return error.name; } };
const type = "multipart/form-data; boundary=b";
const form = '--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nx\r\n--b--';
const request = (init) => new Request("http://a/", init);
const facts = {
  formdata_parser_supports_files: async () => typeof (await new Response(form, { headers: { "content-type": type } }).formData()).get("f"),
  streams_enable_constructors: () => name(() => { new ReadableStream(); new WritableStream(); }),
  async transformstream_enable_standard_constructor() {
    const { readable, writable } = new TransformStream();
    writable.getWriter().write("value").catch(() => {});
    const { value } = await readable.getReader().read();
    return typeof value === "string" ? [value] : [...value];
  },
  global_navigator: () => typeof navigator,
  enable_navigator_language: () => typeof navigator.language,
  http_headers_getsetcookie() {
    const headers = new Headers([["set-cookie", "a"], ["set-cookie", "b"]]);
    return [typeof headers.getSetCookie, [...headers].length];
  },
  urlsearchparams_delete_has_value_arg: () => new URLSearchParams("a=1").has("a", "2"),
  strict_compression_checks: () => name(() => new DecompressionStream("gzip").writable.getWriter().close()),
  async crypto_preserve_public_exponent() {
    const algorithm = { name: "RSA-PSS", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
    const { publicKey } = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    return publicKey.algorithm.publicExponent.constructor.name;
  },
  no_global_importscripts: () => typeof globalThis.importScripts,
  blob_standard_mime_type: async () => (await new Response("x", { headers: { "content-type": "TEXT/plain; charset=UTF-8" } }).blob()).type,
  cache_option_enabled: () => value(() => request({ cache: "no-store" }).cache),
  cache_no_cache_enabled: () => value(() => request({ cache: "no-cache" }).cache),
  upper_case_all_http_methods: () => value(() => request({ method: "patch" }).method),
  enable_weak_ref: () => [typeof globalThis.WeakRef, typeof globalThis.FinalizationRegistry],
  set_event_target_this() {
    const target = new EventTarget();
    let seen;
    target.addEventListener("x", function () { seen = this; });
    target.dispatchEvent(new Event("x"));
    return seen === target;
  },
  expose_global_message_channel: () => [typeof globalThis.MessageChannel, typeof globalThis.MessagePort],
  enhanced_error_serialization: () => structuredClone(Object.assign(new Error("e"), { code: "C" })).code ?? null,
  enable_ctx_exports: (env, ctx) => typeof ctx.exports,
  fetch_iterable_type_support() {
    const encode = (text) => new TextEncoder().encode(text);
    return new Response((function* () { yield encode("a"); yield encode("b"); })()).text();
  },
  fetch_iterable_type_support_override_adjustment() {
    return new Response({ toString: () => "own", *[Symbol.iterator]() { yield new TextEncoder().encode("x"); } }).text();
  },
  strip_bom_in_read_all_text: async () => (await new Response("\ufeffx").text()).length,
  websocket_close_reason_byte_limit: () => name(() => { const [one] = Object.values(new WebSocketPair()); one.accept(); one.close(1000, "x".repeat(124)); }),
  websocket_standard_binary_type: () => Object.values(new WebSocketPair())[0].binaryType,
  spec_compliant_dispatch_exceptions: () => name(() => {
    const target = new EventTarget();
    target.addEventListener("x", () => { throw new Error("boom"); });
    target.dispatchEvent(new Event("x"));
  }),
  disallow_importable_env: () => imported.TEXT ?? null,
  enable_nodejs_global_timers: () => typeof setTimeout(() => {}, 0),
  nodejs_compat_populate_process_env: () => globalThis.process.env.TEXT ?? null,
  nodejs_process_version_24: () => globalThis.process.version.slice(0, 3),
  async fetch_refuses_unknown_protocols() {
    const { message } = await fetch("ftp://127.0.0.1/").catch((error) => error);
    return message.startsWith("Fetch API") ? message : "other";
  },
  async streams_no_default_auto_allocate_chunk_size() {
    let size;
    const stream = new ReadableStream({ type: "bytes", pull(c) { size = c.byobRequest?.view.byteLength ?? null; c.enqueue(new Uint8Array(1)); } });
    await stream.getReader().read();
    return size;
  },
};
export default {
  async fetch(request, env, ctx) {
    const flag = new URL(request.url).searchParams.get("flag");
    return Response.json([await facts[flag](env, ctx), Cloudflare.compatibilityFlags[flag]]);
  },
};
