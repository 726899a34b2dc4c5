// `socket.io-client`: transports `websocket`, and `Fetch` of engine.io-client in place of `polling`, which needs XMLHttpRequest
import { Fetch } from "engine.io-client";
import { io } from "socket.io-client";

export default async ({ http }) => {
  const result = [];
  for (const transports of [["websocket"], [Fetch]]) {
    const socket = io(http, { transports, forceNew: true, reconnection: false, auth: { token: "x" } });
    await new Promise((resolve, reject) => socket.on("connect", resolve).on("connect_error", reject));
    const answer = await socket.timeout(5000).emitWithAck("echo", { a: "日本", bytes: Buffer.from([1, 2]) });
    result.push([answer.a, Buffer.from(answer.bytes).toString("hex"), answer.token]);
    socket.disconnect();
  }
  return result;
};
