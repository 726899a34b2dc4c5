// What the tool of a framework does before a bundler: the component of Svelte becomes JavaScript that renders on a server.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "svelte/compiler";

mkdirSync("compiled");
writeFileSync("compiled/Page.js", compile(readFileSync("Page.svelte", "utf8"), { generate: "server" }).js.code);
