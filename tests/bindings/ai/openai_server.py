"""A small server that speaks OpenAI's API as far as env.AI uses it. It records requests and counts words as tokens."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-the-operators-key"


class OpenAiServer:
    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.written = 0  # events of `endless`
        self.ended = threading.Event()  # a stream of `endless` lost its reader
        bound = type("Bound", (Handler,), {"outer": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    outer: OpenAiServer

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.outer.seen.append(body)
        self.outer.keys.append(self.headers.get("authorization"))
        if body["model"] == "strict" and self.outer.keys[-1] != "Bearer right":
            return self.say({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401)
        if body["model"] == "gone":
            return self.say({"error": {"message": "model not found"}}, 404)
        if body["model"] == "busy":
            return self.say({"error": {"message": "slow down"}}, 429)
        if body["model"] == "huge":
            return self.say({"choices": [{"message": {"content": "x" * (17 << 20)}}]})
        if body["model"] == "not-json":
            return self.raw(200, b"<html>")
        if self.path == "/v1/embeddings":
            return self.embed(body)
        if "bad" in json.dumps(body.get("messages")):
            return self.say({"error": {"message": "bad input"}}, 400)
        if body.get("stream"):
            return self.stream(body)
        return self.answer(body)

    def embed(self, body: dict[str, Any]) -> None:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [{"index": i, "embedding": [len(text), 0.5, -1]} for i, text in enumerate(texts)]
        self.say({"data": data, "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)}})

    def answer(self, body: dict[str, Any]) -> None:
        if self.path == "/v1/completions":
            return self.say({"choices": [{"text": f"{body['prompt']} and on"}]})
        asked = body["messages"][-1]["content"]
        message: dict[str, Any] = {"role": "assistant", "content": f"echo: {asked}"}
        if body.get("response_format"):
            message["content"] = '{"name": "Ada", "age": 36}'
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            function = {"name": body["tools"][0]["function"]["name"], "arguments": '{"city": "Bern"}'}
            message = {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
        self.say({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage(7, 3)})

    def stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        if body["model"] == "endless":
            return self.endless()
        for word in ("He", "llo ", "wörld"):
            data = json.dumps({"choices": [{"delta": {"content": word}}]}, ensure_ascii=False).encode()
            for half in (data[: len(data) - 12], data[len(data) - 12 :] + b"\n\n"):  # cut within letters
                self.wfile.write((b"data: " if half[:1] == b"{" else b"") + half)
                self.wfile.flush()
        if body["model"] == "breaks":
            return
        last = [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage(7, 3)}]
        for each in last:
            self.wfile.write(b"data: " + json.dumps(each).encode() + b"\r\n\r\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def endless(self) -> None:
        event = b"data: " + json.dumps({"choices": [{"delta": {"content": "x" * 1000}}]}).encode() + b"\n\n"
        try:
            while True:
                self.wfile.write(event)
                self.outer.written += 1
        except OSError:
            self.outer.ended.set()

    def say(self, body: object, status: int = 200) -> None:
        self.raw(status, json.dumps(body).encode())

    def raw(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            pass


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
