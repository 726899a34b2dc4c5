import got from "got";

export default async ({ http }) => {
  const json = await got(`${http}/echo`, { searchParams: { q: "1" }, headers: { "x-app": "shop" } }).json();
  const sent = await got.post(`${http}/echo`, { json: { name: "日本" } }).json();
  const zipped = await got(`${http}/gzip`).json();
  const moved = await got(`${http}/redirect`).json();
  const error = await got(`${http}/status/404`).catch((error) => [error.name, error.code, error.response.statusCode]);
  const retried = await got(`${http}/flaky/${Math.random()}`, { retry: { limit: 2, calculateDelay: ({ computedValue }) => computedValue && 1 } }).text();
  const late = await got(`${http}/never`, { timeout: { request: 100 }, retry: { limit: 0 } }).catch((error) => [error.name, error.code]);
  const refused = await got("http://127.0.0.1:1/", { retry: { limit: 0 } }).catch((error) => [error.name, error.code]);
  let length = 0;
  for await (const chunk of got.stream(`${http}/bytes`)) length += chunk.length;
  return [json.url, json.headers["x-app"], sent.body, zipped, moved.url, error, retried, late, refused, length];
};
