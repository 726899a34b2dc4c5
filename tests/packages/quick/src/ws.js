// `ws`: the client, on the WebSocket of the platform; `ping()` and servers are not available
import WebSocket from "ws";

export default async ({ ws }) => {
  const socket = new WebSocket(ws, ["chat"], { headers: { "x-app": "shop" } });
  const messages = [];
  await new Promise((resolve, reject) => {
    socket.on("open", () => {
      socket.send("日本");
      socket.send(Buffer.alloc(100_000, 7));
    });
    socket.on("message", (data, binary) => {
      messages.push(binary ? [data.length, data[0]] : data.toString());
      if (messages.length === 3) socket.close(1000, "done");
    });
    socket.on("close", (code, reason) => (messages.push([code, reason.toString()]), resolve()));
    socket.on("error", reject);
  });
  const refused = await new Promise((resolve) => new WebSocket("ws://127.0.0.1:1/").on("error", (error) => resolve(error.code)));
  return [socket.protocol, messages, refused];
};
