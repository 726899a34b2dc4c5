// Servers for packages that need one, in Node: HTTP (also what Stripe, OpenAI and Anthropic answer), WebSocket, Socket.IO, SMTP, MQTT and a small MongoDB.
// Prints the ports as JSON when all of them listen, and ends with its standard input.
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { Aedes } from "aedes";
import { Server as SocketIo } from "socket.io";
import { SMTPServer } from "smtp-server";
import { createWebSocketStream, WebSocketServer } from "ws";
import { serveMongo } from "./mongo.mjs";

const flaky = new Set();

function json(response, body, status = 200) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function events(response, list) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [name, data] of list) response.write(`${name ? `event: ${name}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  response.end();
}

const chunk = (content) => ({ id: "c1", object: "chat.completion.chunk", created: 1, model: "gpt", choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const message = (content) => ({ id: "m1", type: "message", role: "assistant", model: "claude", content, stop_reason: "end_turn", stop_sequence: null, usage: { input_tokens: 3, output_tokens: 2 } });

/** Path prefix → answer. `body` is the text of the request. */
const routes = {
  "/echo": (request, response, body) => json(response, { method: request.method, url: request.url, headers: request.headers, body }),
  "/redirect": (_, response) => response.writeHead(302, { location: "/echo?moved" }).end(),
  "/gzip": (_, response) => response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(gzipSync('{"zipped":true}')),
  "/bytes": (_, response) => response.writeHead(200).end(Buffer.alloc(300_000, 7)),
  "/status/404": (_, response) => response.writeHead(404, { "content-type": "text/plain" }).end("not here"),
  "/flaky/": (request, response) => {
    if (flaky.has(request.url)) return response.end("at last");
    flaky.add(request.url);
    response.writeHead(503).end();
  },
  "/never": () => {},
  "/v1/customers": (request, response, body) => {
    if (request.method === "POST") return json(response, { id: "cus_1", object: "customer", sent: [body, request.headers.authorization] });
    const after = new URL(request.url, "http://x").searchParams.get("starting_after");
    json(response, { object: "list", url: "/v1/customers", has_more: !after, data: [{ id: after ? "cus_2" : "cus_1", object: "customer" }] });
  },
  "/v1/charges": (_, response) => json(response, { error: { type: "card_error", code: "card_declined", message: "Your card was declined." } }, 402),
  "/openai/v1/chat/completions": (_, response, body) => {
    const { stream, messages } = JSON.parse(body);
    if (stream) return events(response, [["", chunk("he")], ["", chunk("llo 日本")], ["", "[DONE]"]]);
    json(response, { id: "c1", object: "chat.completion", created: 1, model: "gpt", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: `${messages[0].content} back` } }] });
  },
  "/openai/v1/files": (_, response, body) => json(response, { id: "f1", object: "file", received: [body.includes("a line"), body.includes('filename="a.jsonl"'), body.includes("batch")] }),
  "/openai/v1/models/": (_, response) => json(response, { error: { message: "no such model", type: "invalid_request_error", code: "model_not_found" } }, 404),
  "/anthropic/v1/messages": (_, response, body) => {
    if (!JSON.parse(body).stream) return json(response, message([{ type: "text", text: "hello back" }]));
    events(response, [
      ["message_start", { type: "message_start", message: message([]) }],
      ["content_block_start", { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }],
      ["content_block_delta", { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "he" } }],
      ["content_block_delta", { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "llo 日本" } }],
      ["content_block_stop", { type: "content_block_stop", index: 0 }],
      ["message_delta", { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 5 } }],
      ["message_stop", { type: "message_stop" }],
    ]);
  },
  "/anthropic/v1/models/": (_, response) => json(response, { type: "error", error: { type: "not_found_error", message: "no such model" } }, 404),
};

const http = createServer((request, response) => {
  const found = Object.keys(routes).find((prefix) => request.url.startsWith(prefix));
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => (found ? routes[found](request, response, Buffer.concat(parts).toString()) : response.writeHead(500).end(`no route for ${request.url}`)));
});

const sockets = new SocketIo(http);
sockets.on("connection", (socket) => socket.on("echo", (value, answer) => answer({ ...value, token: socket.handshake.auth.token })));

const raw = createServer();
new WebSocketServer({ server: raw, handleProtocols: (offered) => [...offered][0] }).on("connection", (socket, request) => {
  socket.send(`hello ${request.headers["x-app"]}`);
  socket.on("message", (data, binary) => socket.send(data, { binary }));
});

const smtp = new SMTPServer({
  disabledCommands: ["STARTTLS"],
  logger: false,
  onAuth: ({ username, password }, _, done) => (username === "ada" && password === "secret" ? done(null, { user: username }) : done(new Error("wrong password"))),
  onData: (stream, _, done) => {
    const parts = [];
    stream.on("data", (part) => parts.push(part)).on("end", () => {
      const mail = Buffer.concat(parts).toString();
      const told = [/^Subject: (.*)$/m.exec(mail)?.[1], mail.includes("multipart/mixed"), mail.includes("filename=a.txt"), mail.includes("<b>bold</b>")];
      done(null, `received ${JSON.stringify(told)}`);
    });
  },
});
smtp.on("error", () => {}); // clients that leave

const broker = await Aedes.createBroker();
broker.authenticate = (_, name, password, done) => done(null, name === "ada" && `${password}` === "secret");
const mqtt = createServer();
new WebSocketServer({ server: mqtt, handleProtocols: () => "mqtt" }).on("connection", (socket) => broker.handle(createWebSocketStream(socket)));

const listening = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.server ?? server).address().port)));
const [port, wsPort, smtpPort, mqttPort, mongoPort] = await Promise.all([http, raw, smtp, mqtt, serveMongo()].map(listening));
console.log(JSON.stringify({ http: `http://127.0.0.1:${port}`, ws: `ws://127.0.0.1:${wsPort}/`, smtp: { port: smtpPort }, mqtt: `ws://127.0.0.1:${mqttPort}/`, mongo: `mongodb://127.0.0.1:${mongoPort}/` }));
process.stdin.on("end", () => process.exit()).resume();
