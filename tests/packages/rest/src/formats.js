import { parse } from "csv-parse/sync";
import { parse as parseStream } from "csv-parse";
import { XMLBuilder, XMLParser } from "fast-xml-parser";
import iconv from "iconv-lite";
import * as yaml from "js-yaml";
import qs from "qs";
import xml2js from "xml2js";
import { parseCookie, stringifySetCookie } from "cookie";
import { Readable } from "node:stream";

export default async () => {
  const rows = [];
  for await (const row of Readable.from(["a,b\n1,", '"x\n""y"""\n']).pipe(parseStream({ columns: true }))) rows.push(row);
  return [
    parse("name;age\nann;5\n", { columns: true, delimiter: ";" }),
    rows,
    yaml.load("a: [1, 2]\nb: &x {c: 2024-01-01}\nd: *x\n"),
    yaml.dump({ a: [1, { b: "multi\nline" }] }),
    new XMLParser({ ignoreAttributes: false }).parse('<a x="1"><b>2</b><b>3</b></a>'),
    new XMLBuilder({ ignoreAttributes: false }).build({ a: { "@_x": "1", b: [2, 3] } }),
    await xml2js.parseStringPromise('<a x="1"><b>2</b></a>'),
    new xml2js.Builder({ headless: true }).buildObject({ a: { b: ["1", "2"] } }),
    iconv.encode("日本", "Shift_JIS").toString("hex"),
    iconv.decode(Buffer.from("93fa967b", "hex"), "Shift_JIS"),
    iconv.decode(iconv.encode("äöü", "latin1"), "win1252"),
    qs.parse("a[b][]=1&a[b][]=2&c=d"),
    qs.stringify({ a: { b: [1, 2] } }),
    parseCookie("a=1; b=%20x"),
    stringifySetCookie({ name: "a", value: "x y", httpOnly: true, maxAge: 60 }),
  ];
};
