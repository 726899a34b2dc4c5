// The only Node code that runs in an engine: loads the addon and hands over to C++.
//
//   node main.cjs version                     print the versions that the addon was built for, as JSON
//   node main.cjs snapshot WEB_JS OUT         run the web platform once and write the V8 startup snapshot
//   node main.cjs run --threads N --slow-threads N --spares N --pbkdf2 N --heap-initial-mb N --sandbox MODE
//                                             serve: fd 3 is the socket to Python, 4 the snapshot, 5 the ledger,
//                                             6 the socket on which files of objects arrive
//   node main.cjs probe WHAT,… --sandbox MODE for tests: attempt forbidden operations, confined like an engine
//   node main.cjs rehearse SNAPSHOT N         for benchmarks: make N isolates, print the cost of each step, as JSON
"use strict";

const engine = require("./engine.node");

const [command, ...rest] = process.argv.slice(2);

function option(name, fallback) {
  const at = rest.indexOf(name);
  return at < 0 ? fallback : rest[at + 1];
}

switch (command) {
  case "version":
    console.log(JSON.stringify({ node: process.versions.node, v8: process.versions.v8, wire: engine.wireHash }));
    break;
  case "snapshot": {
    const fs = require("node:fs");
    const blob = engine.snapshot(fs.readFileSync(rest[0], "utf8"));
    fs.writeFileSync(rest[1], blob);
    break;
  }
  case "run":
    // Never returns: the engine ends with _exit when Python closes the socket.
    engine.run({
      node: process.versions.node,
      v8: process.versions.v8,
      threads: Number(option("--threads", 4)),
      slowThreads: Number(option("--slow-threads", 1)),
      spares: Number(option("--spares", 4)),
      pbkdf2: Number(option("--pbkdf2", 100_000)),
      sandbox: option("--sandbox", "require"),
      heapInitialMb: Number(option("--heap-initial-mb", 0)),
      measures: option("--limits", "on") === "off" ? 0 : 1, // off: for bench/sandbox_overhead.py
    });
    break;
  case "probe":
    engine.probe(rest[0], option("--sandbox", "require"));
    break;
  case "rehearse":
    console.log(engine.rehearse(require("node:fs").readFileSync(rest[0]), Number(rest[1])));
    break;
  default:
    console.error("usage: main.cjs version | snapshot WEB_JS OUT | run [--threads N] [--spares N] [--sandbox MODE]");
    process.exitCode = 2;
}
