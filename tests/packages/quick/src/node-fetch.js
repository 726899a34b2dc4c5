// `node-fetch`: replaced with the fetch() of the platform, as wrangler does
import fetch, { FormData, Headers } from "node-fetch";

export default async ({ http }) => {
  const response = await fetch(`${http}/echo`, { method: "POST", body: JSON.stringify({ a: 1 }), headers: new Headers({ "content-type": "application/json" }) });
  const echoed = await response.json();
  const form = new FormData();
  form.set("a", "1");
  const posted = await (await fetch(`${http}/echo`, { method: "POST", body: form })).json();
  const zipped = await (await fetch(`${http}/gzip`)).json();
  const moved = await fetch(`${http}/redirect`);
  let length = 0;
  for await (const chunk of (await fetch(`${http}/bytes`)).body) length += chunk.length;
  const missing = await fetch(`${http}/status/404`);
  return [response.status, response.headers.get("content-type"), echoed.body, posted.body.includes('name="a"'), zipped, moved.redirected, (await moved.json()).url, length, missing.ok, await missing.text()];
};
