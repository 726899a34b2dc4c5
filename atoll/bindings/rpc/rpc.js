// The ops of RPC sessions (web/rpc/channel.js) and of ctx.exports. Python carries messages without knowing what they mean.
import { defineOp } from "#web/internal/ops.js";

export const sendMessages = defineOp("rpc.send");
export const receiveMessages = defineOp("rpc.receive");
export const callExport = defineOp("rpc.export");
