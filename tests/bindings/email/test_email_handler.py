"""email() handlers: over the control API, over SMTP and LMTP, and what strangers send."""

from __future__ import annotations

import json
import shutil
import smtplib
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from atoll.bindings.email.receiver import unstuffed
from tests.bindings.email.conftest import MailNode
from tests.npm import NoRegistry, install
from tests.running import Atoll, free_port

ATOLL = str(Path(sys.executable).parent / "atoll")
PROJECT = Path(__file__).parent / "project"
MODULES = Path(__file__).resolve().parents[3] / "build/test-email"  # kept between runs
INBOX = """
import { EmailMessage } from "cloudflare:email";
let seen = null;
export default {
  async fetch() { return Response.json(seen); },
  async email(message, env, ctx) {
    const raw = await new Response(message.raw).text();
    const subject = message.headers.get("subject");
    seen = { from: message.from, to: message.to, subject, size: message.rawSize, raw, error: null };
    const [act, detail] = subject.split(" ");
    try {
      if (act === "reject") message.setReject(detail === "smuggle" ? "no\\r\\n250 ok\\r\\nMAIL" : `not ${detail}`);
      if (act === "throw") throw new TypeError("on purpose");
      if (act === "forward") seen.sent = await message.forward(detail, new Headers({ "X-Seen": "yes" }));
      if (act === "forward-bad") await message.forward("ada@example.com", { Bcc: "eve@example.com" });
      if (act === "reply") seen.sent = await message.reply({ from: message.to, subject: "Re", text: "Thanks" });
      if (act === "reply-as") await message.reply({ from: detail, subject: "Re", text: "Thanks" });
      if (act === "reply-to") await message.reply(new EmailMessage(message.to, detail, "x"));
      if (act === "twice") {
        await message.reply({ from: message.to, subject: "Re", text: "1" });
        await message.reply({ from: message.to, subject: "Re", text: "2" });
      }
    } catch (error) {
      if (act === "throw") throw error;
      seen.error = error.message;
    }
  },
};
"""

REACHES = """
import { connect } from "cloudflare:sockets";
const said = (error) => error.message;
export default { async fetch() {
  const told = await connect("localhost:PORT").opened.catch(said);
  return new Response([told, await fetch("http://127.0.0.1:PORT/").catch(said)].join("\\n"));
} };
"""


@pytest.fixture(scope="module", autouse=True)
def workers(node: MailNode) -> None:
    node.deploy("inbox", INBOX)


def message(subject: str, more: str = "") -> str:
    return f"From: Ada <ada@example.com>\r\nMessage-ID: <7@example.com>\r\nSubject: {subject}\r\n{more}\r\nHällo\r\n"


def deliver(node: Atoll, subject: str, more: str = "") -> dict[str, Any]:
    query = urlencode({"from": "ada@example.com", "to": "inbox@acme.example"})
    path = f"/api/workers/inbox/email?{query}"
    answer = node.request("POST", node.control_host, path, message(subject, more).encode())
    assert answer.status == 200, answer.text
    found = answer.json
    assert isinstance(found, dict)
    return found


def seen(node: Atoll) -> dict[str, Any]:
    found = node.get("inbox").json
    assert isinstance(found, dict)
    return found


def test_a_handler_gets_a_message_over_the_api(node: MailNode) -> None:
    assert deliver(node, "plain") == {"outcome": "ok", "message": "", "rejected": None}
    got, raw = seen(node), message("plain")
    assert got["from"] == "ada@example.com" and got["to"] == "inbox@acme.example" and got["subject"] == "plain"
    assert got["raw"] == raw and got["size"] == len(raw.encode())
    assert deliver(node, "reject spam")["rejected"] == "not spam"
    told = deliver(node, "throw")
    assert told["outcome"] == "exception" and told["message"] == "TypeError: on purpose"


def test_a_message_is_forwarded_from_the_address_that_received_it(node: MailNode) -> None:
    deliver(node, "forward bob@example.com")
    assert seen(node)["error"] is None and seen(node)["sent"] == {"messageId": "<7@example.com>"}
    sent = node.smtp.messages[-1]
    assert (sent.mail_from, sent.rcpt_tos) == ("inbox@acme.example", ["bob@example.com"])
    assert sent.content == b"x-seen: yes\r\n" + message("forward bob@example.com").encode()


def test_a_message_is_answered_once_with_its_references(node: MailNode) -> None:
    deliver(node, "reply", "References: <5@x.example>\r\nIn-Reply-To: <5@x.example>\r\n")
    assert seen(node)["error"] is None
    sent = node.smtp.messages[-1]
    assert (sent.mail_from, sent.rcpt_tos) == ("inbox@acme.example", ["ada@example.com"])
    assert isinstance(sent.content, bytes)
    assert b"In-Reply-To: <7@example.com>" in sent.content
    assert sent.content.startswith(b"References: <5@x.example> <7@example.com>\r\n")
    deliver(node, "twice")
    assert seen(node)["error"] == "Original email is not replyable"


@pytest.mark.parametrize(
    ("subject", "more", "error"),
    [
        ("forward not-an-address", "", "the destination is not an email address"),
        ("forward-bad", "", "forward() adds headers whose names begin with X-, with ASCII values"),
        ("reply-as boss@acme.example", "", "email from boss@acme.example not allowed: it is no address of this tenant."
         " An operator adds it to `email_routes`"),
        ("reply-to eve@example.com", "", "the recipient of a reply must be the sender of the message"),
        ("reply", "Auto-Submitted: auto-replied\r\n", "Original email is not replyable"),
        ("reply", "References: " + "<a@b> " * 100 + "\r\nIn-Reply-To: <a@b>\r\n", "Original email is not replyable"),
    ],
)  # fmt: skip
def test_what_a_handler_may_not_do(node: MailNode, subject: str, more: str, error: str) -> None:
    count = len(node.smtp.messages)
    deliver(node, subject, more)
    assert seen(node)["error"] == error
    assert len(node.smtp.messages) == count


def test_a_message_that_runs_in_a_circle_ends(node: MailNode) -> None:
    assert "circle" in deliver(node, "forward bob@example.com", "Received: from a\r\n" * 30)["rejected"]


def test_a_command_delivers_a_file(node: MailNode, tmp_path: Path) -> None:
    (tmp_path / "m.eml").write_text(message("by command"))
    command = [ATOLL, "email", "send", "m.eml", "--worker", "inbox", "--from", "a@b.example", "--to", "c@acme.example"]
    ran = subprocess.run(
        [*command, "--api", f"http://127.0.0.1:{node.port}"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert seen(node)["subject"] == "by command" and seen(node)["to"] == "c@acme.example"


# --- SMTP ---


def smtp(node: MailNode, lmtp: bool = False) -> smtplib.SMTP:
    return (smtplib.LMTP if lmtp else smtplib.SMTP)("127.0.0.1", node.listen, timeout=20)


@contextmanager
def raw_session(node: MailNode) -> Iterator[Any]:
    with socket.create_connection(("127.0.0.1", node.listen), timeout=20) as plain, plain.makefile("rwb") as file:
        assert file.readline().startswith(b"220 ")
        yield file


@pytest.mark.parametrize("lmtp", [False, True])
def test_mail_servers_deliver_by_smtp_and_lmtp(node: MailNode, lmtp: bool) -> None:
    with smtp(node, lmtp) as client:
        text = message("over smtp") + ".dot\r\n"
        client.sendmail("ada@example.com", ["Any@Acme.example"], text.encode())
        with pytest.raises(smtplib.SMTPDataError, match=r"550.*not wanted"):
            client.sendmail("", ["x@acme.example"], message("reject wanted").encode())
        with pytest.raises(smtplib.SMTPDataError, match="451"):
            client.sendmail("a@b.example", ["x@acme.example"], message("throw").encode())
    with smtp(node, lmtp) as client:
        client.sendmail("ada@example.com", ["Any@Acme.example"], text.encode())
    assert seen(node)["raw"].endswith(text) and seen(node)["raw"].startswith("Received: from ")
    assert seen(node)["to"] == "Any@Acme.example"


def test_unknown_addresses_and_large_messages_are_refused(node: MailNode) -> None:
    with smtp(node) as client, pytest.raises(smtplib.SMTPRecipientsRefused):
        client.sendmail("ada@example.com", ["x@elsewhere.example"], b"A: b\r\n\r\n")
    with smtp(node) as client:  # of another tenant, for sending only
        assert client.ehlo()[0] == 250 and client.mail("a@b.example")[0] == 250
        assert client.rcpt("boss@acme.example")[0] == 550
    large = message("large").encode() + b"x\r\n" * (1 << 19)
    with smtp(node) as client:
        client.ehlo()
        assert client.mail("a@b.example", [f"SIZE={len(large)}"])[0] == 552
        assert client.mail("a@b.example")[0] == 250 and client.rcpt("x@acme.example")[0] == 250
        assert client.data(large)[0] == 552
        assert client.mail("a@b.example")[0] == 250  # the session goes on


def test_a_second_recipient_is_asked_to_come_again(node: MailNode) -> None:
    with smtp(node) as client:
        client.ehlo()
        client.mail("a@b.example")
        assert client.rcpt("x@acme.example")[0] == 250
        assert client.rcpt("y@acme.example")[0] == 452


@pytest.mark.parametrize("end", [b"\n.\n", b"\r.\r", b"\n.\r\n", b"\r\n.\n"])
def test_smuggling_a_second_message_by_odd_line_ends_fails(node: MailNode, end: bytes) -> None:
    hidden = b"MAIL FROM:<eve@example.com>\r\nRCPT TO:<x@acme.example>\r\nDATA\r\nSubject: smuggled\r\n\r\n"
    with raw_session(node) as file:
        file.write(b"EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<x@acme.example>\r\nDATA\r\n")
        file.write(message("outer").encode() + b"x" + end + hidden + b"\r\n.\r\nQUIT\r\n")
        file.flush()
        answers = file.read().decode()
    assert "554 5.6.0 the message has a bare CR or LF" in answers and answers.count("354") == 1
    assert seen(node)["subject"] not in ("smuggled", "outer")


def test_a_reason_cannot_inject_lines_into_smtp(node: MailNode) -> None:
    with smtp(node) as client, pytest.raises(smtplib.SMTPDataError) as caught:
        client.sendmail("a@b.example", ["x@acme.example"], message("reject smuggle").encode())
    assert caught.value.smtp_error == b"5.7.1 no??250 ok??MAIL"


@pytest.mark.parametrize(
    "line",
    [b"EHLO a\nNOOP\r\n", b"x" * 5_000 + b"\r\n", b"EHLO \0\r\n"],
)
def test_a_hostile_command_ends_the_session(node: MailNode, line: bytes) -> None:
    with raw_session(node) as file:
        file.write(line)
        file.flush()
        assert file.read().startswith(b"500 ")


def test_commands_in_the_wrong_order_and_bad_addresses_are_refused(node: MailNode) -> None:
    wrong = [b"DATA", b"RCPT TO:<x@acme.example>", b"MAIL FROM:<a@b.example>", b"VRFY x"]
    with raw_session(node) as file:
        for line in wrong:
            file.write(line + b"\r\n")
        file.write(b"EHLO a\r\nMAIL FROM:<a b@c>\r\nMAIL FROM:<a@b.example> X=\r\nRCPT TO:<x@acme.example>,<y@z>\r\n")
        file.write(b"NOOP\r\n" * 30)
        file.flush()
        answers = file.read().decode().splitlines()
    codes = [answer[:3] for answer in answers if answer[3] == " "]
    assert codes[:8] == ["503", "503", "503", "500", "250", "501", "250", "550"]
    assert len(codes) < 30


# --- packages and `atoll dev` ---


def test_postal_mime_and_mimetext_work(node: MailNode, tmp_path: Path) -> None:
    try:
        install(PROJECT, MODULES)
    except NoRegistry as error:
        pytest.skip(str(error))
    shutil.copytree(PROJECT, tmp_path / "project")
    (tmp_path / "project/node_modules").symlink_to(MODULES / "node_modules")
    command = [ATOLL, "deploy", "--api", f"http://127.0.0.1:{node.port}"]
    ran = subprocess.run(command, cwd=tmp_path / "project", capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    path = f"/api/workers/email-packages/email?{urlencode({'from': 'ada@example.com', 'to': 'info@acme.example'})}"
    answer = node.request("POST", node.control_host, path, message("Frage").encode())
    assert answer.json == {"outcome": "ok", "message": "", "rejected": None}, json.dumps(node.logs("email-packages"))
    sent = node.smtp.messages[-1]
    assert sent.rcpt_tos == ["ada@example.com"] and isinstance(sent.content, bytes)
    assert b"In-Reply-To: <7@example.com>" in sent.content and "You wrote Hällo with 0 files".encode() in sent.content


@pytest.mark.parametrize(
    "text", [b"a\r\n..b\r\n...\r\nc" * 40_000, b"\r\n" * 400_000, b"\r\n.." * 300_000, b"x" * 900_000]
)
async def test_a_message_is_read_in_steps_and_not_changed(text: bytes) -> None:
    whole = bytearray(b"\r\n" + text)
    assert await unstuffed(whole) == bytes(whole).replace(b"\r\n.", b"\r\n")[2:]
    for bare in (b"\n", b"\r"):
        assert await unstuffed(whole + b"\r\n" + bare + b"x") is None


def test_thousands_of_commands_in_a_packet_leave_turns_to_others(node: MailNode) -> None:
    """Answered all the same, in order."""
    with smtp(node) as client:
        client.ehlo("me")
        assert client.sock is not None
        client.sock.sendall(b"RSET\r\n" * 5_000 + b"VRFY x\r\n")
        said = b""
        while not said.endswith(b"500 5.5.2 unknown command\r\n"):
            said += client.sock.recv(1 << 16)
        assert said.count(b"250 2.0.0 ok\r\n") == 5_000


def test_a_worker_cannot_deliver_mail_to_the_listener_of_the_node(tmp_path: Path) -> None:
    """What listens there takes mail of anybody for every tenant: a mail server stands in front. It does not matter that
    the operator lets workers reach this machine."""
    listen = free_port()
    node = Atoll(
        tmp_path, engines=1, email_listen=f"127.0.0.1:{listen}", email_routes="@a.example=default/inbox",
        egress_allow="127.0.0.1",
    )  # fmt: skip
    node.start()
    try:
        node.deploy("reach", REACHES.replace("PORT", str(listen)))
        told = node.get("reach").text
        assert told.count("on the port of this node") == 2, told
    finally:
        assert node.stop() == 0
