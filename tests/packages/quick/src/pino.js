// `pino`: its build for browsers, as with wrangler: it writes to the console, or where `browser.write` says
import pino from "pino";
import { Writable } from "node:stream";

export default async () => {
  const lines = [];
  const target = new Writable({ write: (chunk, _, done) => (lines.push(JSON.parse(chunk)), done()) });
  const log = pino({ base: null, browser: { asObject: true, write: (line) => lines.push(line) } }, target);
  log.info({ user: "ann" }, "signed in %s", "now");
  log.child({ request: 7 }).error("failed");
  log.debug("not shown");
  return lines.map(({ time, ...rest }) => [typeof time, rest]);
};
