"""Loops whose every round is a long built-in function of V8's: they end with the round in which they are told to.

V8 by itself looks up after so many rounds (engine/src/loops.h), so without that most of these would use several times
their limit, and some cost their engine. Asserted is what they really used, not when they were answered.
"""

from __future__ import annotations

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.wire.generated import Outcome
from atoll.workers import Limits

CPU_MS = 100
ROUNDS = {
    "text to values": "JSON.parse(text)",
    "values to text": "JSON.stringify(list)",
    "copies of a value": "structuredClone(list)",
    "copies of an object": "({ ...fields })",
    "copies of a list": "[...list]",
    "filled bytes": "bytes.fill(1)",
    "sorted numbers": "floats.sort()",
    "long sums": "large + 1n",
    "long shifts": "large << 1n",
    "bits of long numbers": "large & (large - 1n)",
    "encoded text": "new TextEncoder().encode(letters)",
    "decoded bytes": "new TextDecoder().decode(bytes)",
    "flat strings": "(letters + 'a').charCodeAt(2)",
    "parts of a string": "letters.split('')",
}
DATA = """
const list = new Array(2e5).fill(1), text = JSON.stringify(list), letters = "x".repeat(2e6);
const bytes = new Uint8Array(1e7), floats = new Float64Array(2e5), large = (1n << 3000000n) - 1n;
const fields = Object.fromEntries(list.slice(0, 2e4).map((one, i) => ["field" + i, one]));
"""
SHAPES = {
    "a function of its own": "function all() { for (;;) { ROUND; } } all();",
    "a generator": "function* all() { for (;;) { ROUND; yield 1; } } for (const one of all());",
    "a callback": "[1].forEach(() => { for (;;) { ROUND; } });",
    "a getter": "({ get all() { for (;;) { ROUND; } } }).all;",
    "catches everything": "for (;;) { try { ROUND; } catch { } finally { continue; } }",
    "deep in the stack": "(function deeper(n) { if (n > 0) deeper(n - 1); for (;;) { ROUND; } })(500);",
    "compiled before": "const once = (n) => { for (let i = 0; i < n; i++) { if (n < 9) ROUND; } }; once(1e6); once(1); "
    "for (let i = 0; i < 2000; i++) once(0); for (;;) { ROUND; }",
    "changes its mind": "const add = (a, b) => a + b; "
    "for (let i = 0; ; i++) { add(i % 2 ? i : 'x', i % 3 ? 0.5 : {}); ROUND; }",
    "a very long function": "for (;;) { ROUND; if (text === '') {" + "bytes[0] += bytes[1] * 3;" * 4000 + "} }",
    "between awaits": "for (;;) { ROUND; await 0; }",
}


async def used_ms(room: EngineRoom, code: str) -> float:
    """What a call really used, by the word of its engine, which must be the one it was."""
    version = script(DATA + f"export default {{ async fetch() {{ {code} }} }};", limits=Limits(cpu_ms=CPU_MS))
    await room.pool.check(version)
    [engine] = room.supervisor.pids
    ear = await room.get(version)
    assert ear.code == "CPU", ear.failure or ear.body
    await room.until(lambda: room.records, "the record")
    assert list(room.supervisor.pids) == [engine] and room.pool.stats().offences == 0
    assert (await room.get(script(HELLO, "victim"))).body == b"hello"
    assert room.records[0].outcome == Outcome.EXCEEDED_CPU
    return room.records[0].cpu_us / 1000


@pytest.mark.parametrize("what", ROUNDS)
async def test_a_loop_of_long_built_ins_ends_in_time(room: EngineRoom, what: str) -> None:
    assert CPU_MS < await used_ms(room, f"for (;;) {{ {ROUNDS[what]}; }}") <= 1.5 * CPU_MS


@pytest.mark.parametrize("shape", SHAPES)
async def test_it_does_so_wherever_it_is(room: EngineRoom, shape: str) -> None:
    assert CPU_MS < await used_ms(room, SHAPES[shape].replace("ROUND", "JSON.parse(text)")) <= 1.5 * CPU_MS
