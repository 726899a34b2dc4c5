"""send_email through a real SMTP server, and what a worker may not send."""

from __future__ import annotations

import email
import json
import ssl
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from atoll.bindings.email.relay import PIECE, smtp_pieces
from tests.bindings.email.conftest import MailNode
from tests.bindings.email.smtp_server import PASSWORD, SmtpServer
from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Atoll

SENDER = """
import { EmailMessage } from "cloudflare:email";
export default { async fetch(request, env) {
  const { binding = "EMAIL", fields, raw, from, to } = await request.json();
  try {
    return Response.json(await env[binding].send(raw === undefined ? fields : new EmailMessage(from, to, raw)));
  } catch (error) {
    return Response.json({ error: error.message, code: error.code });
  }
} };
"""
BINDINGS = [
    {"type": "send_email", "name": "EMAIL"},
    {"type": "send_email", "name": "ONE", "destination_address": "ada@example.com"},
    {"type": "send_email", "name": "SOME", "allowed_destination_addresses": ["ada@example.com"]},
    {"type": "send_email", "name": "AS", "allowed_sender_addresses": ["news@acme.example"]},
]
RAW = "From: Shop <shop@acme.example>\r\nMessage-ID: <1@acme.example>\r\nSubject: Hi\r\n\r\nHello\r\n"
FIELDS = {"from": "shop@acme.example", "to": "ada@example.com", "subject": "Hi", "text": "Hello"}


@pytest.fixture(scope="module", autouse=True)
def workers(node: MailNode) -> None:
    node.deploy("mail-sender", SENDER, bindings=BINDINGS)


def send(node: Atoll, worker: str = "mail-sender", **fields: Any) -> dict[str, Any]:
    answer = node.post(worker, "/", json.dumps(fields))
    assert answer.status == 200, answer.text
    found = answer.json
    assert isinstance(found, dict)
    return found


def send_fields(node: Atoll, binding: str = "EMAIL", **fields: Any) -> dict[str, Any]:
    return send(node, binding=binding, fields={**FIELDS, **fields})


def last(node: MailNode) -> EmailMessage:
    content = node.smtp.messages[-1].content
    assert isinstance(content, bytes)
    found = email.message_from_bytes(content, policy=policy.default)
    assert isinstance(found, EmailMessage)
    return found


def test_a_raw_message_is_sent_as_it_is(node: MailNode) -> None:
    raw = RAW + ".\r\n..two\nbare\rends"
    assert send(node, raw=raw, **{"from": "shop@acme.example", "to": "ada@example.com"}) == {
        "messageId": "<1@acme.example>"
    }
    seen = node.smtp.messages[-1]
    assert (seen.mail_from, seen.rcpt_tos) == ("shop@acme.example", ["ada@example.com"])
    assert seen.content == (RAW + ".\r\n..two\r\nbare\r\nends\r\n").encode()


def test_fields_become_a_message(node: MailNode) -> None:
    attachments = [
        {"content": "aGVsbG8=", "filename": 'häl"lo.txt', "type": "text/plain", "disposition": "attachment"},
        {"content": "AAEC", "filename": "a.png", "type": "image/png", "disposition": "inline", "contentId": "logo"},
    ]
    told = send_fields(
        node, **{"from": {"name": 'Größe "X"', "email": "shop@acme.example"}},
        to=["ada@example.com", "Bob <bob@example.com>"],
        cc="cy@example.com", bcc=[{"name": "D", "email": "di@example.com"}], replyTo="help@acme.example",
        subject="Grüße " * 30, html="<p>Hällo", headers={"X-Kind": "test"}, attachments=attachments,
    )  # fmt: skip
    message = last(node)
    assert told == {"messageId": message["message-id"]}
    expected = ["ada@example.com", "bob@example.com", "cy@example.com", "di@example.com"]
    assert node.smtp.messages[-1].rcpt_tos == expected
    assert message["from"].addresses[0].display_name == 'Größe "X"'
    assert [a.addr_spec for a in message["to"].addresses] == expected[:2] and "di@" not in str(message)
    assert message["subject"].strip() == ("Grüße " * 30).strip() and message["x-kind"] == "test"
    assert message["reply-to"] == "help@acme.example" and message["date"].datetime is not None
    text, html = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None and text.get_content() == "Hello" and html is not None and html.get_content() == "<p>Hällo"
    files = {part.get_filename(): part for part in message.walk() if part.get_filename()}
    assert files['häl"lo.txt'].get_payload(decode=True) == b"hello"
    assert files["a.png"]["content-id"] == "<logo>" and files["a.png"].get_payload(decode=True) == b"\0\1\2"


@pytest.mark.parametrize(
    ("binding", "fields", "error"),
    [
        ("ONE", {"to": "eve@example.com"}, "email to eve@example.com not allowed"),
        ("SOME", {"bcc": "eve@example.com"}, "email to eve@example.com not allowed"),
        ("AS", {}, "email from shop@acme.example not allowed"),
    ],
)
def test_a_binding_restricts_addresses(node: MailNode, binding: str, fields: dict[str, Any], error: str) -> None:
    count = len(node.smtp.messages)
    assert send_fields(node, binding, **fields)["error"] == error
    assert len(node.smtp.messages) == count


ATTACK = "x\r\nBcc: eve@example.com"


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": ATTACK},
        {"from": {"name": ATTACK, "email": "shop@acme.example"}},
        {"from": {"name": "", "email": "shop@acme.example>\r\nRCPT TO:<eve@example.com"}},
        {"to": "ada@example.com\r\nRCPT TO:<eve@example.com>"},
        {"to": [{"name": ATTACK, "email": "ada@example.com"}]},
        {"replyTo": f"{ATTACK} <a@example.com>"},
        {"headers": {"X-A": ATTACK}},
        {"headers": {"X-A\r\nBcc": "eve@example.com"}},
        {"headers": {"Bcc": "eve@example.com"}},
        {"headers": {"Received": "from nowhere"}},
        {"attachments": [{"content": "", "filename": ATTACK, "type": "text/plain"}]},
        {"attachments": [{"content": "", "filename": "a", "type": f"text/plain{ATTACK}"}]},
        {"attachments": [{"content": "", "filename": "a", "type": "text/plain", "contentId": ATTACK}]},
    ],
)
def test_a_header_cannot_be_injected_by_any_field(node: MailNode, fields: dict[str, Any]) -> None:
    count = len(node.smtp.messages)
    assert send_fields(node, **fields)["code"] == "E_VALIDATION_ERROR"
    assert len(node.smtp.messages) == count


@pytest.mark.parametrize(
    ("sender", "head"),
    [
        ("boss@acme.example", "From: boss@acme.example\r\n"),  # an address of another tenant in the same domain
        ("x@globex.example", "From: x@globex.example\r\n"),
        ("x@elsewhere.example", "From: x@elsewhere.example\r\n"),
        ("shop@acme.example", "From: x@globex.example\r\n"),
        ("shop@acme.example", "From: shop@acme.example\r\nFrom: x@globex.example\r\n"),
        ("shop@acme.example", "From: x@globex.example, shop@acme.example\r\n"),
        ("shop@acme.example", "From: x@globex.example <shop@acme.example>\r\n"),
        ("shop@acme.example", "From: shop@acme.example\r\nSender: x@globex.example\r\n"),
        ("shop@acme.example", "From: shop@acme.example\r\nResent-From: x@globex.example\r\n"),
        ("shop@acme.example", "X: y\r\n"),
    ],
)
def test_a_tenant_cannot_send_as_another(node: MailNode, sender: str, head: str) -> None:
    count = len(node.smtp.messages)
    raw = head + "Message-ID: <1@acme.example>\r\n\r\nHello"
    told = send(node, raw=raw, **{"from": sender, "to": "ada@example.com"})
    assert told["code"] in ("E_SENDER_NOT_VERIFIED", "E_VALIDATION_ERROR"), told
    assert len(node.smtp.messages) == count


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ("", "could not parse email: a line is no header"),
        ("no header\r\n\r\n", "could not parse email: a line is no header"),
        ("From: shop@acme.example\r\n\r\nx", "invalid message-id"),
        (RAW.replace("Subject", "Received"), "invalid headers set"),
        ("X: " + "y" * 200_000, "could not parse email: the headers are longer than 128 KB"),
        ("A:\r\n" * 5_000 + RAW, "could not parse email: a line is no header"),
        (RAW + "x" * (1 << 20), "an email may have 1,048,576 bytes (`email_bytes`)"),
        (RAW.replace("Hi", "H\0i"), "could not parse email: a header has a CR or NUL"),
    ],
)  # fmt: skip
def test_a_hostile_message_is_refused(node: MailNode, raw: str, error: str) -> None:
    told = send(node, raw=raw, **{"from": "shop@acme.example", "to": "ada@example.com"})
    assert told == {"error": error, "code": told["code"]}


def test_a_refusal_of_the_server_is_told(node: MailNode) -> None:
    told = send_fields(node, to="nobody@example.com")
    assert told["code"] == "E_DELIVERY_FAILED" and "550 5.1.1 no such user" in told["error"]


def test_recipients_are_counted_by_tenant(node: MailNode) -> None:
    quotas = {"emails_per_day": 3}
    assert node.control("POST", "/api/tenants", {"name": "globex", "quotas": quotas}).status == 201
    body = json.dumps({"name": "globex-sender", "script": SENDER, "bindings": BINDINGS[:1]})
    headers = {"content-type": "application/json", "x-atoll-tenant": "globex"}
    assert node.request("POST", node.control_host, "/api/workers", body, headers).status == 201
    mine = {**FIELDS, "from": "boss@acme.example", "to": ["a@example.com", "b@example.com"]}
    assert "messageId" in send(node, "globex-sender", fields=mine)
    assert send(node, "globex-sender", fields=mine)["code"] == "E_DAILY_LIMIT_EXCEEDED"
    assert node.control("GET", "/api/tenants/globex").json["usage"]["emails_per_day"] == 2


def test_a_node_without_a_server_says_so(atoll: Atoll) -> None:
    atoll.deploy("mail-none", SENDER, bindings=BINDINGS[:1])
    assert "`email_routes`" in send(atoll, "mail-none", fields=FIELDS)["error"]


def test_tls_and_login_are_used(tmp_path: Path) -> None:
    require_openssl()
    authority = make_authority(tmp_path)
    make_certificate(tmp_path, "smtp", "localhost", authority=authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "smtp.pem", tmp_path / "smtp.key")
    smtp = SmtpServer(context)
    (tmp_path / "password").write_text(f"ada:{PASSWORD}\n")
    node = Atoll(
        tmp_path / "node", engines=1, smtp_server=f"smtp://localhost:{smtp.port}", ca_file=authority,
        smtp_credentials=tmp_path / "password", email_routes="*=default/",
    )  # fmt: skip
    node.start()
    try:
        node.deploy("mail-tls", SENDER, bindings=BINDINGS[:1])
        assert "messageId" in send(node, "mail-tls", fields=FIELDS)
        assert smtp.was_tls == [True] and smtp.logins == [("ada", PASSWORD)]
        assert PASSWORD not in node.log()
    finally:
        assert node.stop() == 0
        smtp.close()


def test_no_message_can_end_early_and_smuggle_commands() -> None:
    for end in (b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r"):
        attack = b"x" + end + b"." + end + b"MAIL FROM:<eve@example.com>" + end
        sent = b"".join(smtp_pieces(attack))
        assert sent.count(b"\r\n.\r\n") == 1 and sent.endswith(b"\r\n.\r\n")
        assert sent.count(b"\n") == sent.count(b"\r\n") == sent.count(b"\r")
    long = (b"." * 1000 + b"\r\n") * 400
    assert b"".join(smtp_pieces(long)) == (b"." * 1001 + b"\r\n") * 400 + b".\r\n"


@pytest.mark.parametrize("content", [b"\r" * (1 << 20), b"\r\n" * (1 << 19), b"\n." * (1 << 19), b"x" * (1 << 20)])
def test_no_message_makes_a_piece_without_bound(content: bytes) -> None:
    """A piece is what is converted and written before others get a turn."""
    pieces = list(smtp_pieces(content))
    assert len(pieces) >= 8 and max(map(len, pieces)) <= 4 * PIECE
    plain = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n").replace(b"\r\n.", b"\r\n..")
    assert b"".join(pieces) == plain + (b".\r\n" if plain.endswith(b"\r\n") else b"\r\n.\r\n")
