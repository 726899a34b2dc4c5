"""WebAssembly: deployed modules may run, modules that a worker makes itself may not, and memory counts."""

from __future__ import annotations

import base64

import pytest

from tests.running import Atoll


def leb(number: int) -> bytes:
    out = bytearray()
    while True:
        number, low = number >> 7, number & 127
        out.append(low | (128 if number else 0))
        if not number:
            return bytes(out)


def section(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + leb(len(body)) + body


HEADER = b"\0asm\1\0\0\0"
# (module (import "env" "log" (func (param i32))) (memory (export "memory") 1)
#   (func (export "run") (param i32) (result i32) local.get 0 call 0 local.get 0 i32.const 1 i32.add))
IMPORTING = (
    HEADER
    + section(1, b"\x02" + b"\x60\x01\x7f\x00" + b"\x60\x01\x7f\x01\x7f")
    + section(2, b"\x01\x03env\x03log\x00\x00")
    + section(3, b"\x01\x01")
    + section(5, b"\x01\x00\x01")
    + section(7, b"\x02\x06memory\x02\x00\x03run\x00\x01")
    + section(10, b"\x01\x0b\x00\x20\x00\x10\x00\x20\x00\x41\x01\x6a\x0b")
)


def wasm(module: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(module).decode()}


def test_a_deployed_module_is_instantiated_with_its_imports(atoll: Atoll) -> None:
    main = """
        import module from "./m.wasm";
        const seen = [];
        const { exports } = new WebAssembly.Instance(module, { env: { log: (x) => seen.push(x) } });
        export default { async fetch() {
          const other = await WebAssembly.instantiate(module, { env: { log: (x) => seen.push(x * 10) } });
          const results = [exports.run(1), other.exports.run(2), exports.memory.buffer.byteLength, seen];
          const { name, kind } = WebAssembly.Module.imports(module)[0];
          return Response.json([...results, module instanceof WebAssembly.Module, name, kind]);
        } };"""
    atoll.deploy("wasm-imports", main="main.js", modules={"main.js": main, "m.wasm": wasm(IMPORTING)})
    assert atoll.get("wasm-imports").json == [2, 3, 65536, [1, 20], True, "log", "function"]


def test_code_from_bytes_is_refused_in_every_api(atoll: Atoll) -> None:
    script = f"""
        const bytes = new Uint8Array({list(IMPORTING)});
        const response = () => new Response(bytes, {{ headers: {{ "content-type": "application/wasm" }} }});
        const tries = [
          () => new WebAssembly.Module(bytes),
          () => WebAssembly.compile(bytes),
          () => WebAssembly.instantiate(bytes, {{}}),
          () => WebAssembly.compileStreaming(response()),
          () => WebAssembly.instantiateStreaming(Promise.resolve(response())),
        ];
        export default {{ async fetch() {{
          const answers = [];
          for (const each of tries) {{
            try {{ await each(); answers.push("ran"); }} catch (error) {{ answers.push(`${{error.name}}: ${{error.message}}`); }}
          }}
          return Response.json([WebAssembly.validate(bytes), ...answers]);
        }} }};"""
    atoll.deploy("wasm-bytes", script)
    valid, *answers = atoll.get("wasm-bytes").json
    assert valid is True
    assert len(answers) == 5
    for answer in answers:
        assert answer.startswith("CompileError: WebAssembly") and "import" in answer, answer


def test_a_broken_module_is_refused_at_deploy(atoll: Atoll) -> None:
    main = 'import module from "./m.wasm"; export default { fetch: () => new Response(String(module)) };'
    body = {
        "name": "wasm-broken",
        "main": "main.js",
        "modules": {"main.js": main, "m.wasm": wasm(b"\0asm\1\0\0\0\xff")},
    }
    answer = atoll.control("POST", "/api/workers", body)
    assert 400 <= answer.status < 500 and "WasmModule" in answer.text


BOMBS = {
    "memories": "kept.push(new WebAssembly.Memory({ initial: 160 }));",
    "a-growing-memory": "(kept[0] ??= new WebAssembly.Memory({ initial: 1 })).grow(16);",
    "resizable-buffers": "const b = new ArrayBuffer(0, { maxByteLength: 2 ** 24 }); b.resize(2 ** 24); new Uint8Array(b).fill(1); kept.push(b);",
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_outside_the_heap_counts(atoll: Atoll, name: str) -> None:
    script = f"""
        const kept = [];
        export default {{ fetch(request) {{
          if (request.url.endsWith("/bomb")) {{
            for (let i = 0; i < 400; i++) {{ {BOMBS[name]} }}
            return new Response("survived with " + kept.length);
          }}
          return new Response("fresh " + kept.length);
        }} }};"""
    atoll.deploy(f"outside-{name}", script, limits={"cpu_ms": 20000, "memory_mb": 64})
    reply = atoll.get(f"outside-{name}", "/bomb", {"Accept": "application/json"})
    assert reply.status in (500, 503), reply.text
    record = atoll.logs(f"outside-{name}")[0]
    assert record["outcome"] in ("exceededMemory", "exception"), record
    assert atoll.get(f"outside-{name}").text.startswith("fresh ")
