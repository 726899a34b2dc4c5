// Starts miniflare for bench/bindings.py and bench/r2.py: node miniflare.mjs <folder of node_modules> <port> <folder for data and worker.js>
import { createRequire } from "node:module";

const [peers, port, folder] = process.argv.slice(2);
const { Miniflare } = createRequire(`${peers}/package.json`)("miniflare");

const miniflare = new Miniflare({
  host: "127.0.0.1",
  port: Number(port),
  modules: true,
  scriptPath: `${folder}/worker.js`,
  compatibilityDate: "2025-01-01",
  kvNamespaces: { KV: "bench" },
  kvPersist: `${folder}/kv`,
  r2Buckets: { R2: "bench" },
  r2Persist: `${folder}/r2`,
  cachePersist: `${folder}/cache`,
  queueProducers: { QUEUE: "bench" },
  queueConsumers: { bench: { maxBatchSize: 100, maxBatchTimeout: 0.1 } },
});
await miniflare.ready;

process.on("SIGTERM", async () => {
  await miniflare.dispose();
  process.exit(0);
});
