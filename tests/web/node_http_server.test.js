import { handleAsNodeRequest, httpServerHandler } from "cloudflare:node";
import http from "node:http";
import https from "node:https";
import { finished } from "node:stream";
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

let nextPort = 20000;

/** Serves one Request with a handler, and closes the server afterwards. */
async function ask(handler, path = "/", init = undefined, options = {}) {
  const server = http.createServer(options, handler).listen(nextPort++);
  try {
    return await handleAsNodeRequest(server.address().port, new Request(`https://example.com${path}`, init));
  } finally {
    server.close();
  }
}

const codeOf = (action) => throws(action).code;

export const tests = {
  "a server serves the requests of its port": async () => {
    const server = http.createServer((request, response) => response.writeHead(201, { "X-One": "1" }).end(`${request.method} ${request.url}`));
    equal(server.listening, false);
    server.listen(8080);
    deepEqual([server.listening, server.address()], [true, { port: 8080, family: "IPv4", address: "127.0.0.1" }]);
    const response = await httpServerHandler({ port: 8080 }).fetch(new Request("https://example.com/a?b=c"));
    deepEqual([response.status, response.statusText, response.headers.get("x-one"), await response.text()], [201, "Created", "1", "GET /a?b=c"]);
    equal(codeOf(() => server.listen(8081)), "ERR_SERVER_ALREADY_LISTEN");
    equal(codeOf(() => http.createServer().listen(8080)), "ERR_SERVER_ALREADY_LISTEN");
    await server[Symbol.asyncDispose]();
    equal(server.listening, false);
    const error = await rejects(handleAsNodeRequest(8080, new Request("https://example.com/")));
    ok(error.message.startsWith("Http server with port 8080 not found."), error.message);
  },
  "a handler takes a server that does not listen yet": async () => {
    const server = https.createServer((request, response) => response.end("ok"));
    const handler = httpServerHandler(server);
    ok(server.listening && server.address().port > 0);
    equal(await (await handler.fetch(new Request("https://example.com/"))).text(), "ok");
    server.close();
    throws(() => httpServerHandler());
    throws(() => httpServerHandler({}));
  },
  "invalid ports": () => {
    const server = http.createServer();
    for (const port of [NaN, Infinity, -1, 1.1, 9999999]) equal(codeOf(() => server.listen(port)), "ERR_SOCKET_BAD_PORT");
    equal(server.listening, false);
  },
  "headers arrive as in Node": async () => {
    let found;
    await ask((request, response) => {
      found = request;
      response.end();
    }, "/", { headers: [["accept", "a"], ["Accept", "b"], ["x-foo", "1"], ["cookie", "a=1"], ["cookie", "b=2"], ["constructor", "c"]] });
    deepEqual([found.headers.accept, found.headers["x-foo"], found.headers.constructor, found.headers.host], ["a, b", "1", "c", "example.com"]);
    deepEqual([found.headersDistinct["x-foo"], found.httpVersion, found.socket.encrypted], [["1"], "1.1", true]);
    ok(found.rawHeaders.includes("x-foo"));
  },
  "setHeader and its relatives": async () => {
    const response = await ask((request, response) => {
      response.setHeader("X-A", ["1", "2"]);
      response.appendHeader("x-a", "3");
      response.setHeader("Set-Cookie", ["a=1", "b=2"]);
      response.setHeader("X-B", "1");
      response.removeHeader("X-B");
      response.setHeaders(new Headers({ "x-c": "3" }));
      deepEqual(response.getHeaderNames(), ["x-a", "set-cookie", "x-c"]);
      deepEqual(response.getRawHeaderNames(), ["X-A", "Set-Cookie", "x-c"]);
      deepEqual([response.getHeader("X-a"), response.hasHeader("x-B"), response.headersSent], [["1", "2", "3"], false, false]);
      response.writeHead(200, "Fine", { "X-C": "4" });
      equal(response.headersSent, true);
      for (const change of [
        () => response.setHeader("a", "b"), () => response.appendHeader("a", "b"), () => response.removeHeader("a"),
        () => response.writeHead(200), () => response.setHeaders(new Map()),
      ]) {
        equal(codeOf(change), "ERR_HTTP_HEADERS_SENT");
      }
      response.end();
    });
    deepEqual([response.statusText, response.headers.get("x-a"), response.headers.get("x-c")], ["Fine", "1, 2, 3", "4"]);
    deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
  },
  "errors of arguments": async () => {
    await ask((request, response) => {
      equal(codeOf(() => response.writeHead(99)), "ERR_HTTP_INVALID_STATUS_CODE");
      equal(codeOf(() => response.writeHead(200, "a\nb")), "ERR_INVALID_CHAR");
      equal(codeOf(() => response.setHeader("a b", "c")), "ERR_INVALID_HTTP_TOKEN");
      equal(codeOf(() => response.setHeader("a", "c\r\nd: e")), "ERR_INVALID_CHAR");
      equal(codeOf(() => response.setHeader("a", undefined)), "ERR_HTTP_INVALID_HEADER_VALUE");
      equal(codeOf(() => response.write(["x"])), "ERR_INVALID_ARG_TYPE");
      equal(codeOf(() => response.write(null)), "ERR_STREAM_NULL_VALUES");
      equal(codeOf(() => response.setHeaders({})), "ERR_INVALID_ARG_TYPE");
      response.statusMessage = "";
      response.end();
    });
    equal(codeOf(() => http.createServer({ requestTimeout: "x" })), "ERR_INVALID_ARG_TYPE");
    equal(codeOf(() => http.createServer({ headersTimeout: 2, requestTimeout: 1 })), "ERR_OUT_OF_RANGE");
    equal(codeOf(() => http.createServer({ maxHeaderSize: 1 })), "ERR_OPTION_NOT_IMPLEMENTED");
  },
  "a body is read in chunks, with its encoding": async () => {
    const echo = await ask((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (chunk) => (text += chunk)).on("end", () => response.end(`${text} x2 ${request.complete}`));
    }, "/", { method: "POST", body: "h\u00e9llo" });
    equal(await echo.text(), "h\u00e9llo x2 true");
    const piped = await ask((request, response) => request.pipe(response), "/", { method: "POST", body: new Uint8Array(300_000).fill(7) });
    equal((await piped.bytes()).length, 300_000);
  },
  "writes are sent in order, and the rest waits for the client": async () => {
    const events = [];
    const response = await ask((request, response) => {
      let written = 0;
      const more = () => {
        while (written < 50) {
          written += 1;
          if (!response.write(new Uint8Array(32_768))) return;
        }
        response.end();
      };
      response.on("drain", () => {
        events.push("drain");
        more();
      });
      more();
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    ok(events.length < 5, "nothing is read yet");
    let read = 0;
    for await (const chunk of response.body) read += chunk.length;
    equal(read, 50 * 32_768);
    ok(events.length > 10, `${events.length} drains`);
  },
  "cork, Content-Length and HEAD": async () => {
    const corked = await ask((request, response) => {
      response.cork();
      response.write("one");
      response.write("two");
      equal(response.writableLength, 6);
      response.uncork();
      equal(response.writableLength, 0);
      response.end("three");
    });
    equal(await corked.text(), "onetwothree");
    const long = await ask((request, response) => {
      response.writeHead(200, { "Content-Length": "5" });
      response.write("01234");
      response.end("56789");
    });
    equal(await long.text(), "01234");
    const head = await ask((request, response) => response.end("not sent"), "/", { method: "HEAD" });
    equal(await head.text(), "");
    const empty = await ask((request, response) => response.writeHead(304).end("not sent"));
    deepEqual([empty.status, empty.body], [304, null]);
  },
  "events and flags of a response": async () => {
    const order = [];
    const { promise, resolve } = Promise.withResolvers();
    await ask((request, response) => {
      for (const name of ["prefinish", "finish", "close"]) response.on(name, () => order.push(name));
      request.on("close", () => order.push("request close"));
      response.on("close", () => setTimeout(resolve, 1));
      response.write("a");
      deepEqual([response.writableEnded, response.writableFinished, response.closed], [false, false, false]);
      response.end("b", () => order.push("end callback"));
      deepEqual([response.writableEnded, response.finished], [true, true]);
      response.write("late", (error) => order.push(error.code));
      response.on("error", (error) => order.push(`error ${error.code}`));
    });
    await promise;
    const late = ["ERR_STREAM_WRITE_AFTER_END", "error ERR_STREAM_WRITE_AFTER_END"];
    deepEqual(order.filter((name) => !late.includes(name)).toSorted(), ["close", "end callback", "finish", "prefinish", "request close"].toSorted());
    ok(order.indexOf("finish") < order.indexOf("close"));
    ok(late.every((name) => order.includes(name)), order.join());
  },
  "finished() sees the end of a response": async () => {
    const { promise, resolve } = Promise.withResolvers();
    await ask((request, response) => {
      finished(response, resolve);
      response.end("x");
    });
    equal(await promise, undefined);
  },
  "a destroyed request can still be answered; a destroyed response fails the call": async () => {
    const answered = await ask((request, response) => {
      request.on("error", (error) => {
        response.statusCode = 400;
        response.end(`destroyed: ${error.message}`);
      });
      request.destroy(new Error("test"));
    });
    deepEqual([answered.status, await answered.text()], [400, "destroyed: test"]);
    equal((await rejects(ask((request, response) => response.destroy(new Error("gone"))))).message, "gone");
    equal((await rejects(ask(() => {
      throw new Error("thrown");
    }))).message, "thrown");
  },
  "a client that goes away closes the response": async () => {
    const { promise, resolve } = Promise.withResolvers();
    const response = await ask((request, response) => {
      response.on("close", () => resolve([response.destroyed, response.writableFinished]));
      response.write("start");
    });
    await response.body.cancel();
    deepEqual(await promise, [true, false]);
  },
  "classes of the worker, and calls without new": async () => {
    class Incoming extends http.IncomingMessage {
      get agentName() {
        return this.headers["user-agent"] ?? "unknown";
      }
    }
    class Outgoing extends http.ServerResponse {
      ok(text) {
        this.writeHead(200).end(text);
      }
    }
    const response = await ask((request, response) => response.ok(request.agentName), "/", { headers: { "User-Agent": "t" } }, { IncomingMessage: Incoming, ServerResponse: Outgoing });
    equal(await response.text(), "t");
    function Old(request) {
      http.ServerResponse.call(this, request);
    }
    Object.setPrototypeOf(Old.prototype, http.ServerResponse.prototype);
    const old = new Old({ method: "GET", httpVersionMajor: 1, httpVersionMinor: 1 });
    old.setHeader("a", "b");
    deepEqual([old.getHeader("A"), old instanceof http.OutgoingMessage, http.Server() instanceof http.Server], ["b", true, true]);
  },
  "an OutgoingMessage alone": () => {
    const message = new http.OutgoingMessage();
    equal(codeOf(() => message._implicitHeader()), "ERR_METHOD_NOT_IMPLEMENTED");
    message._implicitHeader = () => {};
    equal(message.write("asd"), true);
    while (message.write("asd".repeat(1000)));
    ok(message.outputSize >= message.writableHighWaterMark);
    message._header = {};
    equal(codeOf(() => message._renderHeaders()), "ERR_HTTP_HEADERS_SENT");
  },
};
