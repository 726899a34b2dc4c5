import winston from "winston";
import { Writable } from "node:stream";

export default async () => {
  const lines = [];
  const stream = new Writable({ write: (chunk, _, done) => (lines.push(`${chunk}`), done()) });
  const { combine, json, simple, errors, splat } = winston.format;
  const log = winston.createLogger({ level: "info", format: combine(errors({ stack: false }), splat(), json()), defaultMeta: { app: "shop" }, transports: [new winston.transports.Stream({ stream }), new winston.transports.Console({ format: simple() })] });
  log.info("hello %s", "you", { n: 1 });
  log.child({ request: 7 }).warn("careful");
  log.debug("not shown");
  log.error(new Error("broken"));
  await new Promise((resolve) => log.on("finish", resolve).end());
  return lines;
};
