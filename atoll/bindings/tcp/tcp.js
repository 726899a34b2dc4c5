// The ops of TCP connections. web/sockets/tcp_port.js uses them; it is loaded when a worker opens its first socket.
import { defineOp } from "#web/internal/ops.js";

// What still waits when the request is over fails, so that pools of connections notice.
export const LOST = "Network connection lost.";

export const openTcp = defineOp("tcp.open", LOST);
export const readTcp = defineOp("tcp.read", LOST);
export const writeTcp = defineOp("tcp.write", LOST);
export const secureTcp = defineOp("tcp.secure", LOST);
export const closeTcp = defineOp("tcp.close");
