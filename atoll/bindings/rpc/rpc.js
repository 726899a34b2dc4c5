// The ops of RPC sessions (web/rpc/channel.js) and of what needs no binding. Python carries messages without knowing what they mean.
import { defineOp } from "#web/internal/ops.js";

export const sendMessages = defineOp("rpc.send");
export const receiveMessages = defineOp("rpc.receive");
export const reach = defineOp("rpc.reach");
