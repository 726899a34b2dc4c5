// Requests to the control API. Every failure is an ApiError with words for people; an ended session asks for a login, and the page
// below it stays as it is.
import { parseExact } from "./exact.js";
import { chooseTenant, chosenTenant, known, session } from "./session.js";

const TIMEOUT = 30_000;
const NO_TENANT = 19012;

export class ApiError extends Error {
  constructor(status, { message, hint = "", code = 0, file = "", line = 0 }) {
    super(message);
    Object.assign(this, { status, hint, code, file, line });
  }
}

export const at = (strings, ...values) =>
  strings.reduce((path, part, number) => path + encodeURIComponent(values[number - 1]) + part);

function headersFor(method, body) {
  const headers = new Headers();
  const me = known.value;
  if (method !== "GET" && me?.csrf) headers.set("X-Atoll-CSRF", me.csrf);
  if (me?.is_operator && chosenTenant.value) headers.set("X-Atoll-Tenant", chosenTenant.value);
  if (body !== undefined && !(body instanceof Blob)) headers.set("Content-Type", "application/json");
  return headers;
}

/** The response to a request that succeeded. */
export async function send(method, path, { body, signal, timeout = TIMEOUT, headers = {} } = {}) {
  const all = headersFor(method, body);
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  const limits = [signal, timeout && AbortSignal.timeout(timeout)].filter(Boolean);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: all,
      body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
      signal: AbortSignal.any?.(limits) ?? limits[0],
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    const late = error.name === "TimeoutError";
    throw new ApiError(0, {
      message: late ? `The node has not answered for ${timeout / 1000} s.` : "The node cannot be reached.",
      hint: "Check that it runs and that this machine can connect to it.",
    });
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, answer.error ?? { message: `The node answered ${response.status}.` });
  if (error.code === NO_TENANT && chosenTenant.value) chooseTenant(""); // it was deleted: back to the usual one
  if (response.status === 401 && session.value !== null) session.value = null;
  throw error;
}

export async function call(method, path, body, options = {}) {
  const response = await send(method, path, { ...options, body });
  return response.status === 204 ? null : response.json();
}

const asked = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
};

export const get = (path, query = {}, options = {}) => call("GET", asked(path, query), undefined, options);

/** For answers with JSON of tenants in them: show it with exactText(). */
export const getExact = async (path, query = {}, options = {}) => parseExact(await (await send("GET", asked(path, query), options)).text());

/** All pages of a list, at most `most` entries. */
export async function all(path, field, most = 10_000, options = {}) {
  const found = [];
  let cursor = "";
  do {
    const page = await get(path, { limit: 1_000, cursor }, options);
    found.push(...page[field]);
    cursor = page.cursor ?? "";
  } while (cursor && found.length < most);
  return found;
}

/** Events of a stream, as { event, data }. Ends with the stream; throws if it breaks. */
export async function* events(path, signal) {
  const response = await send("GET", path, { signal, timeout: 0 });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const event = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      if (event && data) yield { event, data: JSON.parse(data) };
    }
  }
}
