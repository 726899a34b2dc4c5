"""Operations of the S3 endpoint on the rules of a bucket: CORS and lifecycle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element

from starlette.responses import Response

from atoll.bindings.r2.around.cors import Cors, CorsRule, checked_cors
from atoll.bindings.r2.around.lifecycle import LifecycleRule, LifecycleRules, checked_lifecycle
from atoll.bindings.r2.around.settings import BucketSettings
from atoll.bindings.r2.s3.asked import S3Request
from atoll.bindings.r2.s3.documents import document, name_of, read_tree
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.s3.objects import xml

MAX_RULES: Final = 100
MAX_PARTS: Final = 400  # elements in one rule


class S3Rules:
    def __init__(self, settings: BucketSettings) -> None:
        self._settings = settings
        # parameter of the query -> method -> operation
        self.operations: Mapping[str, Mapping[str, Callable[[S3Request], Awaitable[Response]]]] = {
            "cors": {"GET": self.get_cors, "PUT": self.put_cors, "DELETE": self.delete_cors},
            "lifecycle": {"GET": self.get_lifecycle, "PUT": self.put_lifecycle, "DELETE": self.delete_lifecycle},
        }

    async def get_cors(self, asked: S3Request) -> Response:
        found = await self._settings.find(asked.place, Cors)
        if found is None:
            raise S3Fault("NoSuchCORSConfiguration", "The CORS configuration does not exist.")
        return xml(document("CORSConfiguration", [("CORSRule", _shown_cors(rule)) for rule in found.rules]))

    async def put_cors(self, asked: S3Request) -> Response:
        tree = await read_tree(await asked.document(), "CORSConfiguration")
        rules = _few(tree, "CORSRule")
        cors = checked_cors(Cors([_read_cors(each) for each in rules]))
        await self._settings.change(asked.place, Cors, lambda old: cors)
        return Response()

    async def delete_cors(self, asked: S3Request) -> Response:
        await self._settings.change(asked.place, Cors, lambda old: None)
        return Response(status_code=204)

    async def get_lifecycle(self, asked: S3Request) -> Response:
        found = await self._settings.find(asked.place, LifecycleRules)
        if found is None:
            raise S3Fault("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist.")
        return xml(document("LifecycleConfiguration", [("Rule", _shown_lifecycle(rule)) for rule in found.rules]))

    async def put_lifecycle(self, asked: S3Request) -> Response:
        tree = await read_tree(await asked.document(), "LifecycleConfiguration")
        elements = _few(tree, "Rule")
        found = [_read_lifecycle(each, number) for number, each in enumerate(elements, 1)]
        if not found:
            raise S3Fault("MalformedXML", "The lifecycle configuration has no rule.")
        rules = checked_lifecycle(LifecycleRules(found))
        await self._settings.change(asked.place, LifecycleRules, lambda old: rules)
        return Response()

    async def delete_lifecycle(self, asked: S3Request) -> Response:
        await self._settings.change(asked.place, LifecycleRules, lambda old: None)
        return Response(status_code=204)


def _few(tree: Element, name: str) -> list[Element]:
    """The rules of a document, not more than a bucket may have."""
    found = [each for each in tree if name_of(each) == name]
    if len(found) > MAX_RULES or any(len(part) > MAX_PARTS for each in found for part in (each, *each)):
        raise S3Fault("MalformedXML", f"The XML you provided has more than {MAX_RULES} rules, or too large ones.")
    return found


def _read_lifecycle(element: Element, number: int) -> LifecycleRule:
    known = {
        "Rule": ("ID", "Status", "Prefix", "Filter", "Expiration", "AbortIncompleteMultipartUpload"),
        "Filter": ("Prefix",),
        "Expiration": ("Days",),
        "AbortIncompleteMultipartUpload": ("DaysAfterInitiation",),
    }
    inner = {name_of(each): each for each in element}
    for part in (element, *(inner[name] for name in known if name in inner)):
        for child in part:
            if name_of(child) not in known[name_of(part)]:
                told = f"`{name_of(child)[:40]}` of a lifecycle rule is not implemented."
                raise S3Fault("NotImplemented", f"{told} Use a prefix, Days, and DaysAfterInitiation.")
    status = text_of(element, "Status")
    if status not in ("Enabled", "Disabled"):
        raise S3Fault("MalformedXML", "The status of a lifecycle rule must be Enabled or Disabled.")
    days = {name: text_of(inner[name], known[name][0]) for name in list(known)[2:] if name in inner}
    prefix = text_of(inner["Filter"], "Prefix") if "Filter" in inner else text_of(element, "Prefix")
    return LifecycleRule(
        text_of(element, "ID") or f"rule-{number}",
        prefix,
        whole(days["Expiration"]) if "Expiration" in days else None,
        whole(days["AbortIncompleteMultipartUpload"]) if "AbortIncompleteMultipartUpload" in days else None,
        status == "Enabled",
    )


def _shown_lifecycle(rule: LifecycleRule) -> list[tuple[str, Any]]:
    fields: list[tuple[str, Any]] = [("ID", rule.id), ("Filter", [("Prefix", rule.prefix)])]
    fields.append(("Status", "Enabled" if rule.enabled else "Disabled"))
    if rule.expire_days is not None:
        fields.append(("Expiration", [("Days", rule.expire_days)]))
    if rule.abort_days is not None:
        fields.append(("AbortIncompleteMultipartUpload", [("DaysAfterInitiation", rule.abort_days)]))
    return fields


def _read_cors(element: Element) -> CorsRule:
    age = text_of(element, "MaxAgeSeconds")
    return CorsRule(
        texts_of(element, "AllowedOrigin"),
        texts_of(element, "AllowedMethod"),
        texts_of(element, "AllowedHeader"),
        texts_of(element, "ExposeHeader"),
        whole(age) if age else None,
        text_of(element, "ID"),
    )


def _shown_cors(rule: CorsRule) -> list[tuple[str, Any]]:
    fields: list[tuple[str, Any]] = [("ID", rule.id)] if rule.id else []
    for name, values in (
        ("AllowedOrigin", rule.allowed_origins),
        ("AllowedMethod", rule.allowed_methods),
        ("AllowedHeader", rule.allowed_headers),
        ("ExposeHeader", rule.expose_headers),
    ):
        fields += [(name, value) for value in values]
    return fields if rule.max_age_seconds is None else [*fields, ("MaxAgeSeconds", rule.max_age_seconds)]


def texts_of(element: Element, name: str) -> list[str]:
    return [(child.text or "").strip() for child in element if name_of(child) == name]


def text_of(element: Element, name: str) -> str:
    return next(iter(texts_of(element, name)), "")


def whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise S3Fault("MalformedXML", f"{text[:40]!r} is not a whole number.")
    return int(text)
