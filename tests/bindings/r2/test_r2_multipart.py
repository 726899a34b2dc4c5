# ruff: noqa: E501 (workers as strings read best on one line)
"""Multipart uploads of R2 in a real engine: parts, their sizes, tags and order."""

from __future__ import annotations

import hashlib

from tests.bindings.r2.test_r2 import deploy
from tests.running import Atoll

MIB5 = 5 << 20
# Parts of 5 MiB, each filled with its letter.
PARTS = "const P = (letter, size = 5 << 20) => new Uint8Array(size).fill(letter.charCodeAt(0));"
FAILED = "const failed = (promise) => promise.then(() => 'worked', (e) => `${e.name}: ${e.message}`);"


def test_an_object_is_made_of_parts(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "r2-parts",
        {
            "upload": f"""{PARTS} const u = await R2.createMultipartUpload("big", {{httpMetadata: {{contentType: "x/y"}}, customMetadata: {{a: "b"}}}});
                const same = R2.resumeMultipartUpload(u.key, u.uploadId);
                const parts = await Promise.all([u.uploadPart(1, P("a")), same.uploadPart(7, P("b")), u.uploadPart(9, "end")]);
                const o = await same.complete([parts[2], parts[0], parts[1]]);
                return [u.key, parts.map((p) => p.partNumber), o.size, o.etag, o.checksums.toJSON(), o.httpMetadata, o.customMetadata];""",
            "read": 'const o = await R2.get("big"); const b = await o.bytes(); return [b.length, b[0], b[(5 << 20) - 1], b[5 << 20], b[b.length - 1]];',
            "range": 'const o = await R2.get("big", {range: {offset: (5 << 20) - 2, length: 4}}); return o.text();',
            "tail": 'return (await R2.get("big", {range: {suffix: 5}})).text();',
            "again": f"""{PARTS} const u = await R2.createMultipartUpload("again"); await u.uploadPart(1, "first"); const p = await u.uploadPart(1, "second");
                await u.complete([p]); return (await R2.get("again")).text();""",
            "body": """const u = await R2.createMultipartUpload("body"); const p = await u.uploadPart(1, request.body); const o = await u.complete([p]); return [o.size, p.etag];""",
        },
    )
    part = [hashlib.md5(data).digest() for data in (b"a" * MIB5, b"b" * MIB5, b"end")]
    etag = f"{hashlib.md5(b''.join(part)).hexdigest()}-3"
    assert run("upload") == ["big", [1, 7, 9], 2 * MIB5 + 3, etag, {}, {"contentType": "x/y"}, {"a": "b"}]
    assert run("read") == [2 * MIB5 + 3, 97, 97, 98, ord("d")]
    assert run("range") == "aabb"
    assert run("tail") == "bbend"
    assert run("again") == "second"
    large = bytes(range(256)) * 30_000
    assert run("body", large) == [len(large), hashlib.md5(large).hexdigest()]


def test_wrong_parts_are_refused(atoll: Atoll) -> None:
    begin = f'{PARTS} {FAILED} const u = await R2.createMultipartUpload("k");'
    run = deploy(
        atoll,
        "r2-wrong-parts",
        {
            "number": f"{begin} return [await failed(u.uploadPart(0, 'x')), await failed(u.uploadPart(10001, 'x'))];",
            "unknown": f'{FAILED} const u = R2.resumeMultipartUpload("k", "nothing"); return [await failed(u.uploadPart(1, "x")), await failed(u.complete([{{partNumber: 1, etag: "x"}}])), await failed(u.abort())];',
            "otherkey": f'{begin} const o = R2.resumeMultipartUpload("other", u.uploadId); return [await failed(o.uploadPart(1, "x")), await failed(o.abort())];',
            "etag": f"{begin} await u.uploadPart(1, 'x'); return [await failed(u.complete([{{partNumber: 1, etag: 'y'}}])), await failed(u.complete([{{partNumber: 2, etag: 'y'}}]))];",
            "twice": f"{begin} const p = await u.uploadPart(1, 'x'); return failed(u.complete([p, p]));",
            "none": f"{begin} return failed(u.complete([]));",
            "small": f"{begin} const p = [await u.uploadPart(1, 'x'), await u.uploadPart(2, 'y')]; return failed(u.complete(p));",
            "unequal": f"{begin} const p = [await u.uploadPart(1, P('a')), await u.uploadPart(2, P('a', (5 << 20) + 1)), await u.uploadPart(3, 'x')]; return failed(u.complete(p));",
            "largeend": f"{begin} const p = [await u.uploadPart(1, P('a')), await u.uploadPart(2, P('a', (5 << 20) + 1))]; return failed(u.complete(p));",
            "over": f"{begin} const p = await u.uploadPart(1, 'x'); await u.complete([p]); return [await failed(u.complete([p])), await failed(u.uploadPart(1, 'x')), await failed(u.abort())];",
            "abort": f"{begin} await u.uploadPart(1, 'x'); await u.abort(); return [await failed(u.abort()), await failed(u.uploadPart(2, 'x')), await failed(u.complete([]))];",
            "list": "return (await R2.list()).objects.map((o) => [o.key, o.size]);",
        },
    )

    number = "TypeError: Part number must be between 1 and 10000 (inclusive). Actual value was: "
    internal = "We encountered an internal error. Please try again. (10001)"
    missing = "The specified multipart upload does not exist. (10024)"
    no_part = "Error: completeMultipartUpload: One or more of the specified parts could not be found. (10025)"
    problem = "Error: completeMultipartUpload: There was a problem with the multipart upload. (10048)"
    assert run("number") == [f"{number}0", f"{number}10001"]
    assert run("unknown") == [
        f"Error: uploadPart: {missing}",
        f"Error: completeMultipartUpload: {internal}",
        f"Error: abortMultipartUpload: {internal}",
    ]
    assert run("otherkey") == [f"Error: uploadPart: {missing}", f"Error: abortMultipartUpload: {internal}"]
    assert run("etag") == [no_part, no_part]
    assert run("twice") == f"Error: completeMultipartUpload: {internal}"
    assert run("none") == problem
    assert run("small") == (
        "Error: completeMultipartUpload: Your proposed upload is smaller than the minimum allowed object size. (10011)"
    )
    assert run("unequal") == run("largeend") == problem
    assert run("over") == [f"Error: completeMultipartUpload: {missing}", f"Error: uploadPart: {missing}", "worked"]
    assert run("abort") == ["worked", f"Error: uploadPart: {missing}", f"Error: completeMultipartUpload: {missing}"]
    assert run("list") == [["k", 1]]
