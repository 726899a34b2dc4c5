"""The pages of R2, queues, the cache and Durable Objects in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.dashboard.data_node import EVIL, PNG, browser, control, data_node, data_tab, pages, put_file
from tests.dashboard.pages import Pages
from tests.running import Atoll

__all__ = ["browser", "data_node", "data_tab", "pages"]


def file_of(node: Atoll, bucket: str, key: str) -> bytes:
    return node.control("GET", f"/api/r2/{bucket}/objects/{quote(key, safe='')}").body


# R2


def test_folders_lead_to_a_file_which_is_never_run(pages: Pages, data_node: Atoll) -> None:
    pages.open("/data/r2")
    pages.click("hostile-files", "tbody a")
    pages.click("▸ pages/", "tbody a")
    pages.click("index.html", "tbody a")
    pages.wait("document.querySelector('pre.value')?.innerText.includes('<script>')")
    assert pages.run("document.querySelectorAll('#app img, #app script, #app iframe, #app h1').length") == 1
    href = pages.run("document.querySelector('a.button[download]').getAttribute('href')")
    answer = data_node.control("GET", href)
    assert (
        answer.headers["content-disposition"] == "attachment" and answer.headers["x-content-type-options"] == "nosniff"
    )
    assert answer.headers["content-type"] == "application/octet-stream"
    pages.open("/data/r2/hostile-files?key=pages%2Flogo.svg")
    pages.wait("document.querySelector('pre.value')?.innerText.startsWith('<svg')")
    pages.open("/data/r2/hostile-files?key=picture.png")
    pages.wait("document.querySelector('.picture img')?.naturalWidth === 1")
    assert EVIL in pages.run("document.querySelector('.facts').innerText")
    assert "image/png" in pages.run("document.querySelector('.facts').innerText")
    assert pages.complaints() == []


def test_files_are_stored_in_a_folder_and_replaced_only_when_that_is_said(
    pages: Pages, data_node: Atoll, tmp_path: Path
) -> None:
    control(data_node, "POST", "/api/r2", {"name": "uploads"})
    put_file(data_node, "uploads", "in/a.txt", b"old", "text/plain")
    (tmp_path / "a.txt").write_bytes(b"new")
    (tmp_path / "b.png").write_bytes(PNG)
    pages.open("/data/r2/uploads?prefix=in/")
    pages.choose_file(tmp_path / "b.png", ".upload input")
    pages.wait("document.querySelector('tbody')?.innerText.includes('b.png')")
    assert file_of(data_node, "uploads", "in/b.png") == PNG
    assert data_node.control("GET", "/api/r2/uploads/facts/in%2Fb.png").json["http"] == {"contentType": "image/png"}
    pages.choose_file(tmp_path / "a.txt", ".upload input")
    pages.wait("document.querySelector('.notice')?.innerText.includes('a.txt already')")
    assert file_of(data_node, "uploads", "in/a.txt") == b"old"
    pages.click("Replace")
    pages.wait("document.querySelector('.upload')?.innerText.includes('1 stored')")
    assert file_of(data_node, "uploads", "in/a.txt") == b"new"
    pages.click("a.txt", "tbody a")
    pages.click("Delete")
    pages.click("Delete", "dialog button.bad")
    pages.wait("location.search === '?prefix=in%2F' && document.querySelectorAll('tbody tr').length === 1")
    pages.click("Delete the bucket")
    pages.type("uploads", "dialog[open] input")
    pages.click("Delete", "dialog button.bad")
    pages.wait("location.pathname.endsWith('/data/r2')")
    assert data_node.control("GET", "/api/r2/uploads").status == 404
    assert [each for each in pages.complaints() if "404" not in each] == []


def test_ten_thousand_files_come_in_pages(pages: Pages, data_node: Atoll) -> None:
    control(data_node, "POST", "/api/r2", {"name": "many"})
    for number in range(130):
        put_file(data_node, "many", f"{number:04}.txt", b"x", "text/plain")
    pages.open("/data/r2/many", ready="document.querySelectorAll('tbody tr').length === 100")
    pages.click("Next page")
    pages.wait("document.querySelectorAll('tbody tr').length === 30")
    assert "This is the last page." in pages.text()
    pages.click("First page")
    pages.wait("document.querySelector('tbody th')?.innerText === '0000.txt'")


# Queues


def counts(node: Atoll, queue: str) -> dict[str, Any]:
    found: dict[str, Any] = node.control("GET", f"/api/queues/{queue}").json
    return found


def test_a_queue_is_looked_into_paused_filled_and_purged(pages: Pages, data_node: Atoll) -> None:
    control(data_node, "POST", "/api/queues", {"name": "jobs"})
    pages.open("/data/queues/jobs")
    assert "No message waits" in pages.text()
    pages.click("Send a message")
    pages.type('{"id": 12345678901234567890, "evil": "' + EVIL + '"}', "dialog[open] textarea")
    pages.click("Send", "dialog button.primary")
    pages.wait("document.querySelectorAll('details.message').length === 1")
    pages.run("document.querySelector('details.message summary').click()")
    shown = pages.wait("document.querySelector('details[open] pre')?.innerText")
    assert '"id": 12345678901234567890' in shown and EVIL in shown
    assert "12345678901234567890" in data_node.control("GET", "/api/queues/jobs/messages").text
    pages.click("Pause")
    pages.wait("document.querySelector('.head .badge')?.innerText === 'paused'")
    assert counts(data_node, "jobs")["paused"]
    pages.click("Resume")
    pages.wait("!document.querySelector('.head .badge')")
    pages.click("Purge")
    pages.type("jobs", "dialog[open] input")
    pages.click("Purge", "dialog button.bad")
    pages.wait("document.querySelector('.told')?.innerText === '1 messages are deleted.'")
    assert counts(data_node, "jobs")["waiting"] == 0
    assert pages.complaints() == []


def test_messages_that_are_not_json_are_not_sent_as_such(pages: Pages, data_node: Atoll) -> None:
    control(data_node, "POST", "/api/queues", {"name": "typed"})
    pages.open("/data/queues/typed")
    pages.click("Send a message")
    pages.type('"}],"x":[{', "dialog[open] textarea")
    pages.wait("document.querySelector('dialog')?.innerText.includes('This is not JSON.')")
    assert pages.run("document.querySelector('dialog button.primary').disabled")
    pages.run(
        "{ const type = document.querySelector('dialog select'); type.value = 'text'; type.dispatchEvent(new Event('change', { bubbles: true })); }"
    )
    pages.click("Send", "dialog button.primary")
    pages.wait("document.querySelectorAll('details.message').length === 1")
    [message] = data_node.control("GET", "/api/queues/typed/messages").json["messages"]
    assert message["body"] == '"}],"x":[{' and message["content_type"] == "text"


def test_dead_letters_go_back_to_be_tried_again(pages: Pages, data_node: Atoll) -> None:
    consumer = {"queue": "orders", "dead_letter_queue": "orders-dead", "max_retries": 0, "max_batch_timeout": 0}
    script = "export default { fetch() {}, queue(batch) { for (const each of batch.messages) each.retry(); } }"
    data_node.deploy("fails", script, queue_consumers=[consumer])
    control(data_node, "POST", "/api/queues/orders/messages", {"messages": [{"body": 1}]})
    Atoll.wait_until(lambda: counts(data_node, "orders-dead")["waiting"] == 1)
    control(data_node, "POST", "/api/queues/orders/pause")
    pages.open("/data/queues/orders")
    pages.click("orders-dead", ".facts a")
    pages.wait("document.querySelector('h1')?.innerText === 'orders-dead'")
    pages.click("Move or retry")
    assert "orders (came from here)" in pages.wait(
        "document.querySelector('dialog select')?.selectedOptions[0].innerText"
    )
    assert pages.violations() == []
    pages.click("Move", "dialog button.primary")
    pages.wait("document.querySelector('.told')?.innerText === '1 messages are in orders now.'")
    assert counts(data_node, "orders")["waiting"] == 1 and counts(data_node, "orders-dead")["waiting"] == 0


def test_ten_thousand_messages_come_in_pages(pages: Pages, data_node: Atoll) -> None:
    control(data_node, "POST", "/api/queues", {"name": "deep"})
    for _ in range(100):
        control(data_node, "POST", "/api/queues/deep/messages", {"messages": [{"body": "x"}] * 100})
    pages.open("/data/queues/deep", ready="document.querySelectorAll('details.message').length === 25")
    assert "10K" in pages.text()
    pages.click("Next page")
    pages.wait("location.search.startsWith('?after=') && document.querySelectorAll('details.message').length === 25")


# The cache


def test_a_response_is_purged_by_url_tag_or_all(pages: Pages, data_node: Atoll) -> None:
    for what in ("URL", "tag", "all"):
        data_node.get("box")
        pages.open("/data/cache")
        pages.click("default", "tbody a")
        pages.wait("document.querySelector('tbody')?.innerText.includes('shop.example/tea')")
        if what == "URL":
            pages.click("Purge", "td button")
        elif what == "tag":
            pages.run("document.querySelectorAll('form.bar input')[1].focus()")
            pages.tab.send("Input.insertText", text="teas")
            pages.click("Purge", "form button")
        else:
            pages.click("Purge all")
            pages.click("Purge all", "dialog button.bad")
        pages.wait("document.querySelector('.empty')?.innerText.includes('The cache is empty')")
        assert data_node.control("GET", "/api/caches/default").status == 404


# Durable Objects


def test_an_object_is_found_and_looked_into(pages: Pages, data_node: Atoll) -> None:
    id = data_node.object_id  # type: ignore[attr-defined]
    pages.open("/data/objects")
    pages.click("Box", "tbody a")
    pages.click(id, "tbody a")
    pages.wait("document.querySelector('#main').innerText.includes('greeting')")
    assert EVIL in pages.text() and pages.run("document.querySelectorAll('#app img').length") == 0
    pages.click("visits", "tbody a")
    pages.wait("document.querySelector('.grid')?.innerText.includes('<img')")
    assert pages.run("document.querySelector('.right button') === null"), "rows of objects only show"
    pages.click("SQL", ".tabs a")
    pages.type("DELETE FROM visits", ".console textarea")
    pages.click("Run")
    pages.wait("document.querySelector('.notice.bad') !== null")
    pages.run("document.querySelector('.console input[type=checkbox]').click()")
    pages.click("Run")
    pages.wait("document.querySelector('.results')?.innerText.includes('written')")
    pages.click("Sockets", ".tabs a")
    pages.wait("document.querySelector('.empty')?.innerText.includes('No WebSocket is open')")
    assert [each for each in pages.complaints() if "400" not in each] == []


def test_an_alarm_is_deleted_and_set_and_the_object_deleted(pages: Pages, data_node: Atoll) -> None:
    id = data_node.object_id  # type: ignore[attr-defined]
    data_node.get("box")
    path = f"/api/objects/box/Box/{id}"
    assert data_node.control("GET", path).json["alarm"] is not None
    pages.open(f"/data/objects/box/Box/{id}")
    pages.click("Delete", "form button")
    pages.wait("document.querySelector('#main').innerText.includes('None is set.')")
    assert data_node.control("GET", path).json["alarm"] is None
    pages.run(
        "{ const input = document.querySelector('input[type=datetime-local]'); input.value = '2099-01-02T03:04:05'; input.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    pages.click("Set")
    pages.wait("document.querySelector('section time') !== null")
    assert data_node.control("GET", path).json["alarm"].startswith("2099-01-0")
    pages.click("Delete the object")
    pages.type(id[:8], "dialog[open] input")
    pages.click("Delete", "dialog button.bad")
    pages.wait("location.pathname.endsWith('/data/objects/box/Box')")
    listed = [each["id"] for each in data_node.control("GET", "/api/objects/box/Box").json["objects"]]
    assert id not in listed
    data_node.get("box")
