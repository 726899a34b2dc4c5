"""The pages of KV in Chromium."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.dashboard.data_node import EVIL, RTL, browser, control, data_node, data_tab, pages, put_value, value_of
from tests.dashboard.pages import Pages
from tests.running import Atoll

__all__ = ["browser", "data_node", "data_tab", "pages"]


def key_page(namespace: str, key: str) -> str:
    from urllib.parse import quote

    return f"/data/kv/{namespace}?key={quote(key, safe='')}"


def test_find_and_fix_one_kv_value(pages: Pages, data_node: Atoll) -> None:
    control(data_node, "POST", "/api/kv", {"name": "settings"})
    put_value(
        data_node, "settings", "shop/city", b'{"city": "Lisbom"}', "metadata=%7B%22by%22%3A1%7D&expiration_ttl=86400"
    )
    put_value(data_node, "settings", "other", b"1")
    expires = value_of(data_node, "settings", "shop/city").headers["x-atoll-expiration"]
    pages.open("/")
    pages.click("Data", "nav a")
    pages.click("settings", "tbody a")
    pages.wait("document.querySelectorAll('tbody tr').length === 2")
    pages.type("shop/", "input[type=search]")
    pages.wait("document.querySelectorAll('tbody tr').length === 1")
    pages.click("shop/city", "tbody a")
    pages.wait("document.querySelector('pre.value')?.innerText.includes('Lisbom')")
    pages.click("Edit")
    pages.run("document.querySelector('dialog textarea').select()")
    pages.type('{"city": "Lisbon"}', "dialog[open] textarea")
    assert pages.violations() == []
    pages.click("Save")
    pages.wait("document.querySelector('.told')?.innerText === 'The value is stored.'")
    pages.wait("document.querySelector('pre.value')?.innerText.includes('Lisbon')")
    stored = value_of(data_node, "settings", "shop/city")
    assert stored.text == '{"city": "Lisbon"}'
    assert stored.headers["x-atoll-metadata"] == '{"by": 1}' and stored.headers["x-atoll-expiration"] == expires
    assert pages.complaints() == []


def test_an_edit_keeps_every_byte_that_was_not_changed(pages: Pages, data_node: Atoll) -> None:
    before = b"\xef\xbb\xbfline\r\nline two\r\n\r\n"
    put_value(data_node, "hostile", "crlf", before)
    pages.open(key_page("hostile", "crlf"))
    pages.click("Edit")
    pages.type("more", "dialog[open] textarea")
    pages.click("Save")
    pages.wait("document.querySelector('.told')?.innerText === 'The value is stored.'")
    assert value_of(data_node, "hostile", "crlf").body == before + b"more"
    put_value(data_node, "hostile", "mixed", b"a\r\nb\nc")
    pages.open(key_page("hostile", "mixed"))
    pages.click("Edit")
    assert "lines end in two ways" in pages.wait("document.querySelector('dialog[open]')?.innerText")
    assert pages.run("document.querySelector('dialog textarea') === null")


def test_a_value_is_shown_as_text_json_hex_or_a_picture(pages: Pages, data_node: Atoll) -> None:
    pages.open(key_page("hostile", "a/b/../c"))
    shown = pages.wait("document.querySelector('pre.value')?.innerText")
    assert '"big": 12345678901234567890,' in shown and '"x": []' in shown and shown.count("\n") > 5
    pages.click("Text")
    pages.wait("document.querySelector('pre.value')?.innerText.startsWith('{\"big\": 12345678901234567890, ')")
    pages.open(key_page("hostile", "bytes"))
    assert "00000000  00 01 02 03" in pages.wait("document.querySelector('pre.hex')?.innerText")
    pages.open(key_page("hostile", "picture"))
    pages.wait("document.querySelector('.picture img')?.naturalWidth === 1")
    pages.click("Hex")
    assert "89 50 4e 47" in pages.wait("document.querySelector('pre.hex')?.innerText")
    assert pages.complaints() == []


def test_hostile_keys_values_and_metadata_are_text(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/kv/hostile")
    pages.wait("document.querySelectorAll('tbody tr').length >= 6")
    assert EVIL in pages.text() and "a\\u202egpj.exe" in pages.text()
    pages.click("<img", "tbody a")
    pages.wait("document.querySelector('pre.value') !== null")
    assert EVIL in pages.run("document.querySelector('h1').innerText")
    assert EVIL in pages.run("document.querySelector('pre.value').innerText")
    assert EVIL in pages.run("document.querySelector('.facts').innerText")
    pages.open(key_page("hostile", RTL))
    assert "a\\u202egpj.exe" in pages.wait("document.querySelector('pre.value')?.innerText")
    pages.open(key_page("hostile", "long"))
    pages.wait("document.querySelector('.more button')?.innerText.includes('1,048,576')")
    assert pages.run("document.querySelectorAll('#app img').length") == 0
    assert pages.complaints() == []


def test_a_key_is_created_never_over_another_and_deleted(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/kv/hostile")
    pages.click("New key")
    pages.type("bytes", "dialog[open] input[type=text]")
    pages.type("lost", "dialog[open] textarea")
    pages.click("Save")
    pages.wait("document.querySelector('dialog .notice.bad')?.innerText.includes('such a key already')")
    assert value_of(data_node, "hostile", "bytes").body == bytes(range(256))
    pages.type("/new", "dialog[open] input[type=text]")
    pages.click("Save")
    pages.wait("document.querySelector('h1')?.innerText === 'bytes/new'")
    assert value_of(data_node, "hostile", "bytes/new").text == "lost"
    pages.click("Delete")
    pages.click("Delete", "dialog button.bad")
    pages.wait("location.search === '' && document.querySelector('h1')?.innerText === 'hostile'")
    assert data_node.control("GET", "/api/kv/hostile/values/bytes%2Fnew").status == 404


def test_a_file_becomes_a_value_byte_for_byte(pages: Pages, data_node: Atoll, tmp_path: Path) -> None:
    content = bytes(range(255, -1, -1)) * 9_000
    (tmp_path / "picture.bin").write_bytes(content)
    pages.open(key_page("hostile", "bytes"))
    pages.click("Edit")
    assert "not text" in pages.wait("document.querySelector('dialog[open]')?.innerText")
    pages.choose_file(tmp_path / "picture.bin", "dialog input[type=file]")
    pages.click("Save")
    pages.wait("document.querySelector('.told')?.innerText === 'The value is stored.'")
    assert value_of(data_node, "hostile", "bytes").body == content
    pages.wait("document.querySelector('.bytes')?.innerText.includes('Download it to see the rest')")
    put_value(data_node, "hostile", "bytes", bytes(range(256)))


def test_a_download_is_a_file_and_no_page(pages: Pages, data_node: Atoll) -> None:
    pages.open(key_page("hostile", EVIL))
    href = pages.wait("document.querySelector('a.button[download]')?.getAttribute('href')")
    answer = data_node.control("GET", href)
    assert answer.text == EVIL and answer.headers["content-disposition"] == "attachment"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/octet-stream"


def test_a_hundred_thousand_keys_are_never_slow(pages: Pages, data_node: Atoll) -> None:
    control(data_node, "POST", "/api/kv", {"name": "huge"})
    for part in range(10):
        pairs = [{"key": f"k{part * 10_000 + number:06}", "value": "v"} for number in range(10_000)]
        control(data_node, "POST", "/api/kv/huge/bulk", pairs)
    began = time.monotonic()
    pages.open("/data/kv/huge", ready="document.querySelectorAll('tbody tr').length === 100")
    pages.wait("document.querySelector('.head')?.innerText.includes('100K keys')")
    pages.click("Next page")
    pages.wait("document.querySelector('tbody th')?.innerText === 'k000100'")
    pages.type("k09999", "input[type=search]")
    pages.wait("document.querySelectorAll('tbody tr').length === 10")
    assert time.monotonic() - began < 8
    pages.run("history.back()")
    pages.wait("document.querySelector('tbody th')?.innerText === 'k000000'")


def test_a_namespace_is_created_and_deleted_by_its_name(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/kv")
    pages.type("short-lived", "form input[type=text]")
    pages.click("Create namespace")
    pages.wait("location.pathname.endsWith('/data/kv/short-lived') && document.querySelector('.empty') !== null")
    assert "atoll kv put short-lived" in pages.text()
    pages.click("Delete the namespace")
    pages.type("short-lived", "dialog[open] input")
    pages.click("Delete", "dialog button.bad")
    pages.wait("location.pathname.endsWith('/data/kv')")
    names = [each["name"] for each in data_node.control("GET", "/api/kv").json["namespaces"]]
    assert "short-lived" not in names


def test_a_bad_ttl_is_said_and_the_text_stays(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/kv/empty")
    pages.click("New key")
    pages.type("k", "dialog[open] input[type=text]")
    pages.type("typed for long", "dialog[open] textarea")
    pages.run("{ const all = document.querySelectorAll('dialog input[type=text]'); all[all.length - 1].focus(); }")
    pages.tab.send("Input.insertText", text="{broken")
    pages.click("Save")
    said = pages.wait("document.querySelector('dialog .notice.bad')?.innerText")
    assert "metadata" in said.lower()
    assert pages.run("document.querySelector('dialog textarea').value") == "typed for long"
    assert json.loads(data_node.control("GET", "/api/kv/empty/keys").text)["keys"] == []
