// What `node:` modules do in a worker and in Node: the same script runs in both. See tests/e2e/test_beside_node.py.
import { cases as buffer } from "./buffer.js";
import { cases as inspecting } from "./inspecting.js";
import { outcomes } from "./run.js";
import { cases as small } from "./small.js";

const suites = { buffer, inspecting, small };

export default {
  async fetch(request) {
    return Response.json(await outcomes(suites[new URL(request.url).pathname.slice(1)]));
  },
};

/** For Node, which has no requests here. */
export async function all() {
  const found = {};
  for (const [name, cases] of Object.entries(suites)) found[name] = await outcomes(cases);
  return found;
}
