"""env.AI against a server that speaks OpenAI's API over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bindings.ai.openai_server import KEY, OpenAiServer
from tests.running import Answer, Atoll

LLAMA = "@cf/meta/llama-3.1-8b-instruct"
WORKER = """
export default { async fetch(request, env) {
  const { model, inputs, options, act } = await request.json();
  try {
    if (act === "read-some") {
      const reader = (await env.AI.run(model, inputs)).getReader();
      const first = (await reader.read()).value.length;
      await reader.cancel();
      return new Response(`${first > 0}`);
    }
    const result = await env.AI.run(model, inputs, options);
    if (result instanceof Response) return result;
    return result instanceof ReadableStream ? new Response(result) : Response.json(result);
  } catch (error) {
    return Response.json({ name: error.name, message: error.message }, { status: 500 });
  }
} };
"""
MODELS = [f"{LLAMA}=llama3.1:8b", "@cf/baai/bge-base-en-v1.5=bge", "json-less=not-json"]
MODELS += [f"{name}={name}" for name in ("gone", "busy", "huge", "strict", "endless", "breaks")]


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAiServer]:
    server = OpenAiServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, server: OpenAiServer) -> Iterator[Atoll]:
    folder = tmp_path_factory.mktemp("ai")
    (folder / "key").write_text(f"{KEY}\n")
    node = Atoll(folder, engines=1, ai_endpoint=server.url, ai_key_file=folder / "key", ai_models=",".join(MODELS))
    node.start()
    node.deploy("ai", WORKER, bindings=[{"type": "ai", "name": "AI"}])
    yield node
    assert node.stop() == 0


def run(node: Atoll, model: str, inputs: object, worker: str = "ai", **more: Any) -> Answer:
    return node.post(worker, "/", json.dumps({"model": model, "inputs": inputs, **more}))


def events(answer: Answer) -> list[Any]:
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines) and lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_messages_and_prompts_are_answered(node: Atoll, server: OpenAiServer) -> None:
    for inputs in ({"prompt": "Hi"}, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}):
        answer = run(node, LLAMA, inputs).json
        assert answer["response"] == "echo: Hi" and answer["tool_calls"] == []
        assert answer["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert server.seen[-1] == {
        "model": "llama3.1:8b", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5
    }  # fmt: skip
    assert run(node, LLAMA, {"prompt": "As is", "raw": True}).json["response"] == "As is and on"


def test_a_stream_has_the_events_of_workers_ai(node: Atoll) -> None:
    found = events(run(node, LLAMA, {"prompt": "Hi", "stream": True}))
    assert [each["response"] for each in found] == ["He", "llo ", "wörld", "", ""]
    assert found[3]["finish_reason"] == "stop" and found[4]["usage"]["total_tokens"] == 10


def test_embeddings_have_a_shape(node: Atoll) -> None:
    answer = run(node, "@cf/baai/bge-base-en-v1.5", {"text": ["a", "bcd"]}).json
    assert answer["shape"] == [2, 3] and answer["data"] == [[1, 0.5, -1], [3, 0.5, -1]]
    assert run(node, "@cf/baai/bge-base-en-v1.5", {"text": "ab"}).json["shape"] == [1, 3]


def test_tools_and_json_schemas_of_workers_ai_reach_the_server_in_its_form(node: Atoll, server: OpenAiServer) -> None:
    tool = {"name": "weather", "description": "?", "parameters": {"type": "object"}}
    [call] = run(node, LLAMA, {"prompt": "Bern?", "tools": [tool]}).json["tool_calls"]
    assert call["name"] == "weather" and call["arguments"] == {"city": "Bern"}
    assert call["id"] == "c1" and call["function"]["arguments"] == '{"city": "Bern"}'
    assert server.seen[-1]["tools"] == [{"type": "function", "function": tool}]
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    answer = run(
        node, LLAMA, {"prompt": "Who?", "response_format": {"type": "json_schema", "json_schema": schema}}
    ).json
    assert answer["response"] == {"name": "Ada", "age": 36}
    assert server.seen[-1]["response_format"]["json_schema"] == {"name": "response", "schema": schema}


def test_a_raw_response_is_a_response(node: Atoll) -> None:
    raw = {"options": {"returnRawResponse": True}}
    answer = run(node, LLAMA, {"prompt": "Hi"}, **raw)
    assert answer.headers["content-type"] == "application/json" and answer.json["response"] == "echo: Hi"
    answer = run(node, LLAMA, {"prompt": "Hi", "stream": True}, **raw)
    assert answer.headers["content-type"] == "text/event-stream" and len(events(answer)) == 5
    answer = run(node, "nothing", {"prompt": "Hi"}, **raw)
    assert answer.status == 400 and answer.json["internalCode"] == 5007


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        ("@cf/no/model", {"prompt": "x"}, "5007: No such model @cf/no/model or task"),
        ("gone", {"prompt": "x"}, "5007: No such model gone or task"),
        ("busy", {"prompt": "x"}, "3040: Capacity temporarily exceeded, please try again."),
        (LLAMA, {"prompt": "x", "messages": []}, "5006: Error: prompt and messages are mutually exclusive"),
        (LLAMA, {"messages": [{"role": "user", "content": "bad"}]}, "5006: Error: bad input"),
        (LLAMA, {"prompt": "x" * (5 << 20)}, "3006: Request is too large: inputs may have 4 MB"),
        ("json-less", {"prompt": "x"}, "3040: the AI server of this node cannot be reached, please try again."),
        ("huge", {"prompt": "x"}, "3040: the AI server of this node cannot be reached, please try again."),
        (LLAMA, {}, "5006: Error: oneOf at '/' not met, 0 matches: required properties at '/' are 'prompt', required"
         " properties at '/' are 'messages'"),
        (LLAMA, {"audio": [1]},
         "5006: Error: Atoll runs text generation and embeddings only, which do not take `audio`"),
    ],
)  # fmt: skip
def test_faults_have_the_numbers_of_workers_ai(node: Atoll, model: str, inputs: object, message: str) -> None:
    answer = run(node, model, inputs)
    assert answer.status == 500 and answer.json == {"name": "InferenceUpstreamError", "message": message}


def test_a_worker_never_sees_the_operators_key_in_an_error_of_the_server(node: Atoll, server: OpenAiServer) -> None:
    answer = run(node, "strict", {"prompt": "x"})
    assert server.keys[-1] == f"Bearer {KEY}"
    assert KEY not in answer.text and "the operator must check its settings" in answer.text
    assert KEY not in node.log()


def test_a_worker_cannot_choose_a_model_or_more_answers_by_its_inputs(node: Atoll, server: OpenAiServer) -> None:
    inputs = {"prompt": "x", "model": "expensive", "n": 1000, "best_of": 9, "stream_options": {"include_usage": False}}
    assert run(node, LLAMA, inputs).status == 200
    assert set(server.seen[-1]) == {"model", "messages"} and server.seen[-1]["model"] == "llama3.1:8b"
    run(node, LLAMA, {**inputs, "stream": True})
    assert server.seen[-1]["stream_options"] == {"include_usage": True}


def test_a_stream_that_breaks_off_has_no_end_mark(node: Atoll) -> None:
    answer = run(node, "breaks", {"prompt": "x", "stream": True})
    assert "wörld" in answer.text and "[DONE]" not in answer.text


def test_an_unread_stream_is_not_buffered_and_is_counted_when_it_is_cancelled(
    node: Atoll, server: OpenAiServer
) -> None:
    def used() -> int:
        text = node.control("GET", "/metrics").text
        found = [line for line in text.splitlines() if line.startswith("atoll_ai_tokens_today{") and "compl" in line]
        return int(float(found[0].split()[-1])) if found else 0

    before = used()
    assert run(node, "endless", {"prompt": "x", "stream": True}, act="read-some").text == "true"
    assert server.ended.wait(20)
    assert server.written < 20_000  # of 1 KB each: what sockets and windows hold
    node.wait_until(lambda: used() > before)


def test_a_tenant_above_its_tokens_is_refused(node: Atoll) -> None:
    assert node.control("POST", "/api/tenants", {"name": "thrifty", "quotas": {"ai_tokens_per_day": 15}}).status == 201
    body = {"name": "thrifty-ai", "script": WORKER, "bindings": [{"type": "ai", "name": "AI"}]}
    headers = {"content-type": "application/json", "x-atoll-tenant": "thrifty"}
    assert node.request("POST", node.control_host, "/api/workers", json.dumps(body), headers).status == 201
    assert [run(node, LLAMA, {"prompt": "x"}, "thrifty-ai").status for _ in range(2)] == [200, 200]
    told = "3036: You have used up your daily allocation of 15 tokens of this node."
    assert run(node, LLAMA, {"prompt": "x"}, "thrifty-ai").json["message"] == told
    assert run(node, LLAMA, {"prompt": "x"}).status == 200  # other tenants are not
    shown = node.control("GET", "/api/tenants/thrifty").json
    assert shown["usage"]["ai_tokens_per_day"] == 20


def test_what_atoll_does_not_have_is_said(node: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      const said = [env.AI.aiGatewayLogId];
      for (const act of [() => env.AI.gateway("g"), () => env.AI.toMarkdown([]), () => env.AI.autorag("a")]) {
        try { await act(); } catch (error) { said.push(error.message); }
      }
      said.push((await env.AI.models({ search: "bge" })).map((each) => each.name));
      return Response.json(said);
    } };"""
    node.deploy("ai-parts", script, bindings=[{"type": "ai", "name": "AI"}])
    nothing, gateway, markdown, rag, models = node.get("ai-parts").json
    assert nothing is None and models == ["@cf/baai/bge-base-en-v1.5"]
    assert gateway == "env.AI.gateway() is a service of Cloudflare, which Atoll does not have. env.AI.run() works."
    assert "toMarkdown" in markdown and "autorag" in rag


def test_a_node_without_a_server_says_so(atoll: Atoll) -> None:
    atoll.deploy("ai-none", WORKER, bindings=[{"type": "ai", "name": "AI"}])
    told = run(atoll, LLAMA, {"prompt": "x"}, "ai-none").json["message"]
    assert told.startswith("3043: this node has no AI server. An operator names one with the setting `ai_endpoint`")


def test_tokens_of_today_survive_a_restart(node: Atoll) -> None:
    before = node.control("GET", "/api/tenants/thrifty").json["usage"]["ai_tokens_per_day"]
    assert node.stop() == 0
    node.start()
    assert node.control("GET", "/api/tenants/thrifty").json["usage"]["ai_tokens_per_day"] == before > 0
