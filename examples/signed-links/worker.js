// Links that expire and cannot be forged, made with Node's modules: code written for Node runs unchanged.
/* global Buffer, process -- the flag nodejs_compat gives them */
import { createHmac, timingSafeEqual } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import zlib from "node:zlib";

const HOUR = 3600;

function sign(path, expires) {
  return createHmac("sha256", process.env.SECRET).update(`${path} ${expires}`).digest();
}

function isValid(path, expires, signature) {
  const given = Buffer.from(signature, "base64url");
  const right = sign(path, expires);
  return given.length === right.length && timingSafeEqual(given, right) && Number(expires) > Date.now() / 1000;
}

async function report() {
  const chunks = [];
  await pipeline(Readable.from(["one,", "two,", "three\n"]), zlib.createGzip(), async (zipped) => {
    for await (const chunk of zipped) chunks.push(chunk);
  });
  return Buffer.concat(chunks);
}

export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/link") {
      const expires = Math.floor(Date.now() / 1000) + HOUR;
      return new Response(`/report.csv.gz?expires=${expires}&signature=${sign("/report.csv.gz", expires).toString("base64url")}\n`);
    }
    if (pathname !== "/report.csv.gz") return new Response("Ask for /link first.\n", { status: 404 });
    if (!isValid(pathname, searchParams.get("expires") ?? "0", searchParams.get("signature") ?? "")) {
      return new Response("This link is not valid any more.\n", { status: 403 });
    }
    return new Response(await report(), { headers: { "content-type": "application/gzip" } });
  },
};
