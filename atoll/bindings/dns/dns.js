// The ops of node:dns. web/node/dns.js uses them; it is loaded when a worker imports it.
import { defineOp } from "#web/internal/ops.js";

export const lookupName = defineOp("dns.lookup");
export const resolveName = defineOp("dns.resolve");
