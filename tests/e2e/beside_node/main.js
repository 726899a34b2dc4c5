// The behaviour of `node:` modules in a worker and in Node: the same script runs in both. See tests/e2e/test_beside_node.py.
import { cases as agreeing } from "./agreeing.js";
import { cases as buffer } from "./buffer.js";
import { cases as certificates } from "./certificates.js";
import { cases as edges } from "./edges.js";
import { cases as files } from "./files.js";
import { cases as inspecting } from "./inspecting.js";
import { cases as keys } from "./keys.js";
import { cases as oddArguments } from "./odd_arguments.js";
import { outcomes } from "./run.js";
import { cases as signing } from "./signing.js";
import { cases as small } from "./small.js";
import { cases as unpacking } from "./unpacking.js";
import { cases as utility } from "./utility.js";
import { cases as zipping } from "./zipping.js";

const suites = {
  agreeing, buffer, certificates, edges, files, inspecting, keys, odd_arguments: oddArguments, signing, small, unpacking, utility, zipping,
};

export default {
  async fetch(request) {
    return Response.json(await outcomes(suites[new URL(request.url).pathname.slice(1)]));
  },
};

/** The entry point for Node, which has no requests here. */
export async function all() {
  const found = {};
  for (const [name, cases] of Object.entries(suites)) found[name] = await outcomes(cases);
  return found;
}
