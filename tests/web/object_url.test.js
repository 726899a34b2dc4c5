// https://w3c.github.io/FileAPI/#url
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const named = (parts, type) => URL.createObjectURL(new Blob(parts, { type }));

export const tests = {
  "an object URL can be fetched until it is revoked": async () => {
    const url = named(["abc"], "text/x");
    ok(/^blob:null\/[0-9a-f-]{36}$/.test(url));
    const response = await fetch(`${url}#part`);
    deepEqual([response.status, response.statusText, response.type, response.url], [200, "OK", "basic", url]);
    deepEqual([...response.headers], [["content-length", "3"], ["content-type", "text/x"]]);
    equal(await response.text(), "abc");
    URL.revokeObjectURL(`${url}#part`);
    equal((await fetch(url)).status, 200);
    URL.revokeObjectURL(url);
    await rejects(fetch(url), TypeError);
  },
  "a Request keeps the Blob of its URL after a revoke": async () => {
    const url = named(["abc"]);
    const request = new Request(url);
    URL.revokeObjectURL(url);
    equal(await (await fetch(request.clone())).text(), "abc");
    equal(await (await fetch(request)).text(), "abc");
  },
  "a range of a Blob": async () => {
    const get = async (range) => fetch(named(["0123456789"]), { headers: { range } });
    for (const [range, text, where] of [["bytes=2-4", "234", "2-4"], ["bytes= 8-", "89", "8-9"], ["bytes=-3", "789", "7-9"],
      ["bytes=5-99999999999", "56789", "5-9"], ["bytes=-99", "0123456789", "0-9"]]) {
      const response = await get(range);
      deepEqual([response.status, response.headers.get("content-range")], [206, `bytes ${where}/10`]);
      equal(await response.text(), text);
    }
    for (const range of ["bytes=10-", "bytes=4-2", "bytes=-", "bytes=0-1,3-4", "lines=0-1"]) await rejects(get(range), TypeError);
  },
  "invalid uses of object URLs": async () => {
    throws(() => URL.createObjectURL({}), TypeError);
    throws(() => URL.createObjectURL(), TypeError);
    await rejects(fetch("blob:null/nothing"), TypeError);
    await rejects(fetch(named(["abc"]), { method: "POST" }), TypeError);
  },
};
