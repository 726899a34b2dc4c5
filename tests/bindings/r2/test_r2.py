# ruff: noqa: E501 (workers as strings read best on one line)
"""R2 as a worker sees it, in a real engine: the whole surface, its limits and its words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from tests.running import Atoll

# Runs the body of each request as the inside of an async function of (R2, request, env).
RUNNER = """
export default {
  async fetch(request, env) {
    const test = TESTS[new URL(request.url).pathname.slice(1)];
    try {
      const value = await test(env.R2, request, env);
      return value instanceof Response ? value : Response.json({ value: value ?? null });
    } catch (error) {
      return Response.json({ error: `${error.name}: ${error.message}` });
    }
  },
};
"""


def deploy(atoll: Atoll, name: str, tests: dict[str, str], **fields: Any) -> Callable[..., Any]:
    """A worker with some tests; returns a function that runs one of them."""
    table = ",\n".join(f"{json.dumps(key)}: async (R2, request, env) => {{ {code} }}" for key, code in tests.items())
    bindings = [{"type": "r2", "name": "R2", "bucket": name}]
    body = {"limits": {"cpu_ms": 10_000}, "bindings": bindings, **fields}
    atoll.deploy(name, f"const TESTS = {{ {table} }};\n{RUNNER}", **body)

    def run(test: str, data: bytes | None = None) -> Any:
        answer = atoll.request("GET" if data is None else "POST", atoll.host(name), f"/{test}", data)
        assert answer.status == 200, answer.text
        return answer.json.get("error") or answer.json["value"]

    return run


def test_values_of_every_type_are_stored_and_read(atoll: Atoll) -> None:
    text = "schön \U0001f600"
    run = deploy(
        atoll,
        "r2-types",
        {
            "text": f'await R2.put("k", {json.dumps(text)}); return (await R2.get("k")).text();',
            "json": 'await R2.put("k", JSON.stringify({a: [1]})); return (await R2.get("k")).json();',
            "buffer": 'await R2.put("k", new Uint8Array([1, 2, 3]).buffer); return [...new Uint8Array(await (await R2.get("k")).arrayBuffer())];',
            "view": 'await R2.put("k", new Uint8Array([1, 2, 3, 4]).subarray(1, 3)); return [...await (await R2.get("k")).bytes()];',
            "blob": 'await R2.put("k", new Blob(["blob"]), {httpMetadata: {contentType: "text/x"}}); const b = await (await R2.get("k")).blob(); return [b.size, b.type, await b.text()];',
            "null": 'await R2.put("k", null); const o = await R2.get("k"); return [o.size, await o.text(), o.range];',
            "fixed": 'const { readable, writable } = new FixedLengthStream(5); const w = writable.getWriter(); w.write(new TextEncoder().encode("fixed")); w.close(); await R2.put("k", readable); return (await R2.get("k")).text();',
            "response": 'await R2.put("k", new Response("streamed").body); return (await R2.get("k")).text();',
            "request": 'await R2.put("k", request.body); return [(await R2.head("k")).size, (await R2.head("k")).checksums.toJSON().md5];',
            "copy": 'await R2.put("copy", (await R2.get("k")).body); return [(await R2.head("copy")).size, (await R2.head("copy")).etag];',
            "unknown": 'await R2.put("k", new ReadableStream({start(c) { c.enqueue(new Uint8Array(3)); c.close(); }}));',
            "missing": 'return [await R2.get("none"), await R2.head("none"), await R2.delete("none") === undefined];',
            "twice": 'await R2.put("k", "v"); const o = await R2.get("k"); const before = o.bodyUsed; await o.text(); return [before, o.bodyUsed, await o.text().catch((e) => `${e.name}: ${e.message}`)];',
            "tag": "return [Object.prototype.toString.call(R2), typeof R2.get, Object.keys(R2)];",
            "delete": 'await R2.put("a", "1"); await R2.put("b", "2"); await R2.delete(["a", "b", "c"]); return [await R2.head("a"), await R2.head("b")];',
            "ssec": 'await R2.put("k", "v", {ssecKey: "00".repeat(32)});',
        },
    )
    assert run("text") == text
    assert run("json") == {"a": [1]}
    assert run("buffer") == [1, 2, 3]
    assert run("view") == [2, 3]
    assert run("blob") == [4, "text/x", "blob"]
    assert run("null") == [0, "", {"offset": 0, "length": 0}]
    assert run("fixed") == "fixed"
    assert run("response") == "streamed"
    large = bytes(range(256)) * 20_000
    assert run("request", b"small") == [5, hashlib.md5(b"small").hexdigest()]
    assert run("request", large) == [len(large), hashlib.md5(large).hexdigest()]
    assert run("copy") == [len(large), hashlib.md5(large).hexdigest()]
    assert run("unknown") == (
        "TypeError: Provided readable stream must have a known length"
        " (request/response body or readable half of FixedLengthStream)"
    )
    assert run("missing") == [None, None, True]
    assert run("twice") == [
        False,
        True,
        "TypeError: Body has already been used. It can only be used once. Use tee() first if you need to read it twice.",
    ]
    assert run("tag") == ["[object R2Bucket]", "function", []]
    assert run("delete") == [None, None]
    assert "ssecKey is not supported" in run("ssec")


def test_an_object_has_all_its_facts(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "r2-facts",
        {
            "put": """const o = await R2.put("k", "value", {
                httpMetadata: {contentType: "text/plain", contentLanguage: "de", contentDisposition: "inline", contentEncoding: "identity", cacheControl: "no-store", cacheExpiry: new Date(86400000)},
                customMetadata: {by: "me", "ü": "é"}, sha256: await crypto.subtle.digest("SHA-256", new TextEncoder().encode("value")), storageClass: "InfrequentAccess"});
                return [o, o.uploaded instanceof Date, o.checksums.md5.byteLength, o.checksums.sha1 === undefined];""",
            "headers": """await R2.put("h", "v", {httpMetadata: new Headers({"Content-Type": "a/b", "Expires": "Thu, 01 Jan 1970 00:00:10 GMT", "X-Other": "1"})});
                const headers = new Headers(); const o = await R2.head("h"); o.writeHttpMetadata(headers); return [[...headers], o.httpMetadata.cacheExpiry.getTime(), o.customMetadata];""",
            "get": 'const o = await R2.get("k"); return [o.key, o.size, o.etag, o.httpEtag, o.range, o.httpMetadata, o.customMetadata, o.storageClass, o.checksums, o.version.length];',
            "versions": 'const a = await R2.put("k", "1"), b = await R2.put("k", "1"); return [a.version !== b.version, a.etag === b.etag];',
            "class": 'await R2.put("k", "v", {storageClass: "Frozen"});',
        },
    )
    shown, is_date, length, no_sha1 = run("put")
    assert (shown["key"], shown["size"], is_date, length, no_sha1) == ("k", 5, True, 16, True)
    md5, sha256 = hashlib.md5(b"value").hexdigest(), hashlib.sha256(b"value").hexdigest()
    http = {
        "contentType": "text/plain", "contentLanguage": "de", "contentDisposition": "inline",
        "contentEncoding": "identity", "cacheControl": "no-store", "cacheExpiry": "1970-01-02T00:00:00.000Z",
    }  # fmt: skip
    custom = {"by": "me", "ü": "é"}
    assert (shown["httpMetadata"], shown["customMetadata"]) == (http, custom)
    checksums = {"md5": md5, "sha256": sha256}
    whole = {"offset": 0, "length": 5}
    assert run("get") == ["k", 5, md5, f'"{md5}"', whole, http, custom, "InfrequentAccess", checksums, 32]
    expires = "Thu, 01 Jan 1970 00:00:10 GMT"
    assert run("headers") == [[["content-type", "a/b"], ["expires", expires]], 10_000, {}]
    assert run("versions") == [True, True]
    assert run("class") == "TypeError: the storage class is 'Frozen': use Standard or InfrequentAccess"


RANGES: list[tuple[str, object]] = [
    ("{offset: 2}", ["234567890", 2, 9]),
    ("{offset: 2, length: 3}", ["234", 2, 3]),
    ("{length: 3}", ["012", 0, 3]),
    ("{offset: 9, length: 100}", ["90", 9, 2]),
    ("{offset: 11}", ["", 11, 0]),
    ("{suffix: 3}", ["890", 8, 3]),
    ("{suffix: 100}", ["01234567890", 0, 11]),
    ('new Headers({range: "bytes=1-2"})', ["12", 1, 2]),
    ('new Headers({range: "bytes=-2"})', ["90", 9, 2]),
    ('new Headers({range: "bytes=8-"})', ["890", 8, 3]),
    ('new Headers({range: "bytes=1-2, 4-5"})', ["01234567890", 0, 11]),
    ('new Headers({range: "lines=1-2"})', ["01234567890", 0, 11]),
    ("new Headers()", ["01234567890", 0, 11]),
    ("{offset: 12}", "Error: get: The requested range is not satisfiable (10039)"),
    ("{length: 0}", "Error: get: The requested range is not satisfiable (10039)"),
    ("{suffix: 0}", "Error: get: The requested range is not satisfiable (10039)"),
    ("{offset: -1}", "RangeError: Invalid range. Starting offset (-1) must be greater than or equal to 0."),
    ("{offset: 1.5}", "RangeError: Invalid range. Starting offset (1.5) must be an integer, not floating point."),
    ("{length: -1}", "RangeError: Invalid range. Length (-1) must be greater than or equal to 0."),
    ("{suffix: -1}", "RangeError: Invalid suffix. Suffix (-1) must be greater than or equal to 0."),
    ("{suffix: 1, offset: 1}", "TypeError: Suffix is incompatible with offset."),
    ("{suffix: 1, length: 1}", "TypeError: Suffix is incompatible with length."),
]


def test_ranges(atoll: Atoll) -> None:
    code = 'const o = await R2.get("k", {range: %s}); return [await o.text(), o.range.offset, o.range.length];'
    tests = {f"case{n}": code % options for n, (options, _) in enumerate(RANGES)}
    run = deploy(atoll, "r2-ranges", {"fill": 'await R2.put("k", "01234567890");', **tests})
    run("fill")
    for n, (options, expected) in enumerate(RANGES):
        assert run(f"case{n}") == expected, options


CONDITIONS: list[tuple[str, str, object]] = [  # of get and put: options, the outcome of get, of put
    ("{etagMatches: ETAG}", "body", True),
    ('{etagMatches: "other"}', "no body", False),
    ('{etagMatches: "*"}', "body", True),
    ("{etagDoesNotMatch: ETAG}", "no body", False),
    ('{etagDoesNotMatch: "other"}', "body", True),
    ('{etagDoesNotMatch: "*"}', "no body", False),
    ("{uploadedBefore: new Date(AT + 1)}", "body", True),
    ("{uploadedBefore: new Date(AT)}", "no body", False),
    ("{uploadedAfter: new Date(AT - 1)}", "body", True),
    ("{uploadedAfter: new Date(AT)}", "no body", False),
    ("{uploadedAfter: new Date(AT - 1000), secondsGranularity: true}", "body", True),
    ("{uploadedAfter: new Date(AT), secondsGranularity: true}", "no body", False),
    ("{uploadedBefore: new Date(0), etagMatches: ETAG}", "body", True),
    ('{uploadedAfter: new Date(AT + 5000), etagDoesNotMatch: "other"}', "body", True),
    ("{etagMatches: ETAG, etagDoesNotMatch: ETAG}", "no body", False),
    ('new Headers({\'if-match\': `"x", "${ETAG}"`})', "body", True),
    ("new Headers({'if-match': `W/\"${ETAG}\"`})", "no body", False),
    ("new Headers({'if-none-match': `W/\"${ETAG}\"`})", "no body", False),
    ("new Headers({'if-none-match': '*'})", "no body", False),
    ("new Headers({'if-modified-since': new Date(AT - 2000).toUTCString()})", "body", True),
    ("new Headers({'if-unmodified-since': new Date(AT - 2000).toUTCString()})", "no body", False),
    ('{etagMatches: `"${ETAG}"`}', 'TypeError: Conditional ETag should not be wrapped in quotes ("E").', None),
    (
        "new Headers({'if-match': '\"open'})",
        'Error: The conditional header has a tag that is not valid at: "open',
        None,
    ),
]


def test_conditions(atoll: Atoll) -> None:
    begin = 'const o = await R2.put("k", "v"); const ETAG = o.etag, AT = o.uploaded.getTime();'
    tests = {
        "missing": """return [await R2.put("none", "1", {onlyIf: {etagMatches: "*"}}), await R2.put("none", "1", {onlyIf: {uploadedAfter: new Date(0)}}),
        (await R2.put("none", "1", {onlyIf: {etagDoesNotMatch: "*"}})).size, await R2.put("none", "2", {onlyIf: {etagDoesNotMatch: "*"}}), (await R2.get("none")).size];"""
    }
    for n, (options, _, _) in enumerate(CONDITIONS):
        tests[f"get{n}"] = (
            f'{begin} const g = await R2.get("k", {{onlyIf: {options}}}); return "body" in g ? "body" : "no body";'
        )
        tests[f"put{n}"] = (
            f'{begin} const p = await R2.put("k", "new", {{onlyIf: {options}}}); return [p !== null, await (await R2.get("k")).text()];'
        )
    run = deploy(atoll, "r2-conditions", tests)
    assert run("missing") == [None, None, 1, None, 1]
    etag = hashlib.md5(b"v").hexdigest()
    for n, (options, got, put) in enumerate(CONDITIONS):
        assert run(f"get{n}").replace(etag, "E") == got, options
        if put is not None:
            assert run(f"put{n}") == [put, "new" if put else "v"], options


def test_hashes(atoll: Atoll) -> None:
    actual = {name: hashlib.new(name, b"v").hexdigest() for name in ("md5", "sha1", "sha256", "sha384", "sha512")}
    sizes = {
        "md5": ("MD5", 16),
        "sha1": ("SHA-1", 20),
        "sha256": ("SHA-256", 32),
        "sha384": ("SHA-384", 48),
        "sha512": ("SHA-512", 64),
    }
    tests = {
        "both": 'await R2.put("k", "v", {md5: "00".repeat(16), sha1: "00".repeat(20)});',
        "after": 'return [await R2.head("bad"), (await R2.list({prefix: "bad"})).objects.length];',
    }
    for name, (_, size) in sizes.items():
        tests |= {
            f"{name}-right": f'const o = await R2.put("k", "v", {{{name}: "{actual[name].upper()}"}}); return o.checksums.toJSON();',
            f"{name}-wrong": f'await R2.put("bad", "v", {{{name}: new Uint8Array({size})}});',
            f"{name}-bytes": f'await R2.put("bad", "v", {{{name}: new Uint8Array(3)}});',
            f"{name}-hex": f'await R2.put("bad", "v", {{{name}: "abc"}});',
            f"{name}-text": f'await R2.put("bad", "v", {{{name}: "x".repeat({2 * size})}});',
        }
    run = deploy(atoll, "r2-hashes", tests)
    assert run("both") == "TypeError: You cannot specify multiple hashing algorithms."
    for name, (label, size) in sizes.items():
        assert run(f"{name}-right") == {"md5": actual["md5"], name: actual[name]}
        assert run(f"{name}-wrong") == (
            f"Error: put: The {label} checksum you specified did not match what we received.\n"
            f"You provided a {label} checksum with value: {'00' * size}\nActual {label} was: {actual[name]} (10037)"
        )
        assert run(f"{name}-bytes") == f"TypeError: {label} is {size} bytes, not 3"
        assert run(f"{name}-hex") == f"TypeError: {label} is {2 * size} hex characters, not 3"
        assert run(f"{name}-text") == f"TypeError: Provided {label} wasn't a valid hex string"
    assert run("after") == [None, 0]


def test_lists(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "r2-lists",
        {
            "fill": """for (const key of ["a", "b/1", "b/2", "b/x/3", "c", "d/4", "\u00fc", "\U0001f600"]) await R2.put(key, key, {customMetadata: {k: key}, httpMetadata: {contentType: "t"}});""",
            "all": "const l = await R2.list(); return [l.objects.map((o) => o.key), l.truncated, l.cursor === undefined, l.delimitedPrefixes, l.objects[0].httpMetadata === undefined];",
            "groups": 'const l = await R2.list({delimiter: "/"}); return [l.objects.map((o) => o.key), l.delimitedPrefixes, l.truncated];',
            "below": 'const l = await R2.list({prefix: "b/", delimiter: "/"}); return [l.objects.map((o) => o.key), l.delimitedPrefixes];',
            "pages": """const pages = []; let cursor; do { const l = await R2.list({delimiter: "/", limit: 2, cursor}); pages.push([...l.objects.map((o) => o.key), ...l.delimitedPrefixes]); cursor = l.cursor; } while (cursor); return pages;""",
            "after": 'return [(await R2.list({startAfter: "b/2"})).objects.length, (await R2.list({startAfter: "c", cursor: (await R2.list({limit: 1})).cursor})).objects.map((o) => o.key)];',
            "include": 'const l = await R2.list({prefix: "c", include: ["customMetadata", "httpMetadata"]}); return [l.objects[0].customMetadata, l.objects[0].httpMetadata];',
            "unknown": 'await R2.list({include: ["everything"]});',
            "headers": 'const l = await R2.list({prefix: "c"}); l.objects[0].writeHttpMetadata(new Headers());',
            "zero": "await R2.list({limit: 0});",
            "many": "await R2.list({limit: 1001});",
            "half": "await R2.list({limit: 1.5});",
            "cursor": 'await R2.list({cursor: "?"});',
        },
    )
    run("fill")
    assert run("all") == [["a", "b/1", "b/2", "b/x/3", "c", "d/4", "ü", "\U0001f600"], False, True, [], True]
    assert run("groups") == [["a", "c", "ü", "\U0001f600"], ["b/", "d/"], False]
    assert run("below") == [["b/1", "b/2"], ["b/x/"]]
    assert run("pages") == [["a", "b/"], ["c", "d/"], ["ü", "\U0001f600"]]
    assert run("after") == [5, ["d/4", "ü", "\U0001f600"]]
    assert run("include") == [{"k": "c"}, {"contentType": "t"}]
    assert run("unknown") == "RangeError: Unsupported include value everything"
    assert run("headers") == (
        "TypeError: HTTP metadata unknown for key `c`. Did you forget to add 'httpMetadata' to `include` when listing?"
    )
    for test in ("zero", "many", "half"):
        assert run(test) == "Error: list: MaxKeys params must be positive integer <= 1000. (10022)"
    assert run("cursor") == "TypeError: the cursor is not one that list() returned"


def test_limits(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "r2-limits",
        {
            "key": 'await R2.put("ü".repeat(512), "v"); return (await R2.head("ü".repeat(512))).size;',
            "long": 'await R2.put("ü".repeat(512) + "x", "v");',
            "empty": 'await R2.get("");',
            "keys": "await R2.delete(Array(1001).fill('k'));",
            "custom": 'await R2.put("k", "v", {customMetadata: {k: "v".repeat(8191)}}); return 1;',
            "toomuch": 'await R2.put("k", "v", {customMetadata: {k: "v".repeat(8192)}});',
            "wide": 'await R2.put("k", "v", {customMetadata: {k: "\u0100" + "v".repeat(4095)}});',
            "upload": 'const { readable } = new FixedLengthStream(5 * 2 ** 30); await R2.put("k", readable);',
        },
    )
    assert run("key") == 1
    assert run("long") == "Error: put: The specified object name is not valid. (10020)"
    assert run("empty") == "Error: get: The specified object name is not valid. (10020)"
    assert run("keys") == "Error: delete: MaxKeys params must be positive integer <= 1000. (10022)"
    assert run("custom") == 1
    for test in ("toomuch", "wide"):
        assert run(test) == "Error: put: Your metadata headers exceed the maximum allowed metadata size. (10012)"
    assert run("upload") == "Error: put: Your proposed upload exceeds the maximum allowed object size. (100100)"
