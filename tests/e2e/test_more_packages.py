"""More packages from npm, unchanged: plain ones and ones written for Node."""

from __future__ import annotations

import pytest

from tests.e2e.test_packages import bundle
from tests.running import Atoll

FORM = (
    b'--xx\r\nContent-Disposition: form-data; name="name"\r\n\r\nann\r\n'
    b'--xx\r\nContent-Disposition: form-data; name="tag"\r\n\r\na\r\n'
    b'--xx\r\nContent-Disposition: form-data; name="tag"\r\n\r\nb\r\n'
    b'--xx\r\nContent-Disposition: form-data; name="file"; filename="f.txt"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n'
    b"--xx--\r\n"
)
FORM_HEADERS = {"Content-Type": "multipart/form-data; boundary=xx"}


@pytest.fixture(scope="module")
def pure(atoll: Atoll) -> str:
    atoll.deploy("pure", bundle("pure_packages", *NODE, f"--banner:js={REQUIRE}"), limits={"cpu_ms": 1000})
    return "pure"


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> str:
    script = bundle("node_packages", *NODE, f"--banner:js={REQUIRE}")
    atoll.deploy("node", script, compatibility_flags=["nodejs_compat"], limits={"cpu_ms": 1000})
    return "node"


# Node's modules as packages import them: by bare name, and with require(), which a module does not have by itself.
REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire("/");'
NODE = [f"--external:{name}" for name in ("buffer", "crypto", "events", "stream", "util", "string_decoder")]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/case", ["fooBarBaz", "foo-bar-baz"]),
        ("/dayjs", "2024-02-29 01:00"),
        ("/xml", [{"a": {"b": [2, 3], "@_x": "1"}}, '<a x="1"><b>2</b><b>3</b></a>']),
        ("/qs", [{"a": {"b": ["1", "2"]}, "c": "d"}, "a%5Bb%5D%5B0%5D=1&a%5Bb%5D%5B1%5D=2"]),
        ("/superjson", [True, True, "bigint"]),
        ("/jwt", ["x", None]),
        ("/ulid", [26, 5, True]),
        ("/yaml", [{"a": [1, 2], "b": [{"c": True}]}, "x:\n  - 1\n"]),
    ],
)
def test_plain_packages(atoll: Atoll, pure: str, path: str, answer: object) -> None:
    assert atoll.get(pure, path).json == answer


def test_packages_for_rendering_matching_and_validation(atoll: Atoll, pure: str) -> None:
    assert atoll.get(pure, "/marked").text.startswith("<h1>Title</h1>\n<ul>\n<li><em>one</em></li>")
    assert [atoll.get(pure, f"/match/{n}").text for n in (0, 7, 70)] == ["zero", "digit", "more"]
    query = b'{"query": "{ hello(name: \\"you\\") list }"}'
    assert atoll.post(pure, "/graphql", query).json == {"data": {"hello": "hello you", "list": [1, 2]}}
    assert atoll.post(pure, "/valibot", b'{"name": "ann"}').json == {"name": "ann", "tags": []}
    assert "name" in atoll.post(pure, "/valibot", b'{"name": "a"}').json


def test_hono_etag_basic_auth_and_forms(atoll: Atoll, pure: str) -> None:
    tag = atoll.get(pure, "/etag/x").headers["etag"]
    assert atoll.get(pure, "/etag/x", {"If-None-Match": tag}).status == 304
    assert atoll.get(pure, "/private/x").status == 401
    assert atoll.get(pure, "/private/x", {"Authorization": "Basic YW5uOnNlY3JldA=="}).text == "inside"
    assert atoll.post(pure, "/form", FORM, FORM_HEADERS).json == ["ann", ["a", "b"], "content", "f.txt"]


def test_jsonwebtoken_and_bcrypt(atoll: Atoll, node: str) -> None:
    assert atoll.get(node, "/jwt").json == ["ann", "bob", "invalid signature"]
    assert atoll.get(node, "/bcrypt").json == [True, False]


def test_packages_on_streams_of_node(atoll: Atoll, node: str) -> None:
    rows = atoll.post(node, "/csv", b"name,age\nann,5\nbob,7\n").json
    assert rows == [[{"name": "ann", "age": "5"}, {"name": "bob", "age": "7"}], [["a", "b"]]]
    fields = atoll.post(node, "/upload", FORM, FORM_HEADERS).json
    assert fields == {"name": "ann", "tag": "b", "file": ["f.txt", "text/plain", "content"]}
