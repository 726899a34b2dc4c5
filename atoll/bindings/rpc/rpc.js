// The ops of RPC sessions (web/rpc/channel.js) and of what needs no binding. Python carries messages without knowing what they mean.
import { defineOp } from "#web/internal/ops.js";

export const sendMessages = defineOp("rpc.send", undefined, { gated: false });
export const receiveMessages = defineOp("rpc.receive", undefined, { gated: false });
export const endFacet = defineOp("rpc.facet");
export const cloneFacet = defineOp("rpc.clone");
export const reach = defineOp("rpc.reach");
