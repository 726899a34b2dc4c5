// Packages written for Node: they need the `node:` modules that nodejs_compat provides.
import bcrypt from "bcryptjs";
import busboy from "busboy";
import { parse } from "csv-parse";
import { parse as parseSync } from "csv-parse/sync";
import jsonwebtoken from "jsonwebtoken";
import { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const routes = {
  "/jwt": async () => {
    const { privateKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
    const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", privateKey)).toString("base64");
    const pem = `-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----`;
    const short = jsonwebtoken.sign({ user: "ann" }, "secret", { expiresIn: "1h" });
    const signed = jsonwebtoken.sign({ user: "bob" }, pem, { algorithm: "ES256" });
    let refused = "";
    try {
      jsonwebtoken.verify(short, "other");
    } catch (error) {
      refused = error.message;
    }
    const { createPublicKey } = await import("node:crypto");
    const publicPem = createPublicKey(pem).export({ format: "pem", type: "spki" });
    return [jsonwebtoken.verify(short, "secret").user, jsonwebtoken.verify(signed, publicPem, { algorithms: ["ES256"] }).user, refused];
  },
  "/bcrypt": async () => {
    const hash = await bcrypt.hash("pass", 4);
    return [await bcrypt.compare("pass", hash), bcrypt.compareSync("wrong", hash)];
  },
  "/csv": async (request) => {
    const rows = [];
    await pipeline(Readable.fromWeb(request.body), parse({ columns: true }), async (records) => {
      for await (const record of records) rows.push(record);
    });
    return [rows, parseSync("a;b", { delimiter: ";" })];
  },
  "/upload": async (request) => {
    const fields = {};
    const parser = busboy({ headers: Object.fromEntries(request.headers) });
    parser.on("field", (name, value) => (fields[name] = value));
    parser.on("file", (name, file, { filename, mimeType }) => {
      const chunks = [];
      file.on("data", (chunk) => chunks.push(chunk)).on("end", () => (fields[name] = [filename, mimeType, Buffer.concat(chunks).toString()]));
    });
    await pipeline(Readable.fromWeb(request.body), parser);
    return fields;
  },
};

export default {
  async fetch(request) {
    return Response.json(await routes[new URL(request.url).pathname](request));
  },
};
