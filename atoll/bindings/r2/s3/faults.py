"""Errors of the S3 endpoint: codes and statuses as S3 has them, as XML."""

from __future__ import annotations

from xml.sax.saxutils import escape

from atoll.bindings.r2.limits import R2Refused
from atoll.errors import AtollError, InvalidArgument, QuotaExceeded, StorageFailed

STATUS = {
    "AccessDenied": 403,
    "AccessForbidden": 403,
    "AuthorizationHeaderMalformed": 400,
    "AuthorizationQueryParametersError": 400,
    "BadDigest": 400,
    "BucketAlreadyOwnedByYou": 409,
    "BucketNotEmpty": 409,
    "EntityTooLarge": 400,
    "EntityTooSmall": 400,
    "IncompleteBody": 400,
    "InsufficientStorage": 507,
    "InternalError": 500,
    "InvalidAccessKeyId": 403,
    "InvalidArgument": 400,
    "InvalidBucketName": 400,
    "InvalidPart": 400,
    "InvalidRange": 416,
    "InvalidRequest": 400,
    "KeyTooLongError": 400,
    "MalformedTrailerError": 400,
    "MalformedXML": 400,
    "MetadataTooLarge": 400,
    "MethodNotAllowed": 405,
    "MissingContentLength": 411,
    "NoSuchBucket": 404,
    "NoSuchCORSConfiguration": 404,
    "NoSuchKey": 404,
    "NoSuchLifecycleConfiguration": 404,
    "NoSuchUpload": 404,
    "NotImplemented": 501,
    "PreconditionFailed": 412,
    "QuotaExceeded": 403,
    "RequestTimeTooSkewed": 403,
    "SignatureDoesNotMatch": 403,
    "SlowDown": 503,
    "XAmzContentSHA256Mismatch": 400,
}

# The code of R2 -> that of S3
OF_R2 = {
    10001: "NoSuchUpload",
    10006: "NoSuchBucket",
    10007: "NoSuchKey",
    10008: "BucketNotEmpty",
    10011: "EntityTooSmall",
    10012: "MetadataTooLarge",
    10020: "KeyTooLongError",
    10022: "InvalidArgument",
    10024: "NoSuchUpload",
    10025: "InvalidPart",
    10031: "PreconditionFailed",
    10037: "BadDigest",
    10039: "InvalidRange",
    10048: "InvalidPart",
    19014: "QuotaExceeded",
    19030: "InsufficientStorage",
    100100: "EntityTooLarge",
}


class S3Fault(AtollError):
    """The endpoint refuses a request."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = STATUS[reason]


def fault_of(error: AtollError) -> S3Fault:
    """An error of the store as one of S3."""
    if isinstance(error, S3Fault):
        return error
    if isinstance(error, R2Refused):
        return S3Fault(OF_R2.get(error.number, "InvalidRequest"), error.message)
    if isinstance(error, StorageFailed):
        return S3Fault("InsufficientStorage", str(error))
    if isinstance(error, QuotaExceeded):
        return S3Fault("SlowDown", str(error))
    if isinstance(error, InvalidArgument):
        return S3Fault("InvalidArgument", str(error))
    return S3Fault("InternalError", "We encountered an internal error. Please try again.")


def error_xml(fault: S3Fault, resource: str, request_id: str) -> bytes:
    parts = {"Code": fault.reason, "Message": str(fault), "Resource": resource, "RequestId": request_id}
    inner = "".join(f"<{name}>{escape(clean(value))}</{name}>" for name, value in parts.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inner}</Error>'.encode()


def clean(text: str) -> str:
    """A text without the characters that XML 1.0 cannot hold."""
    return "".join(char for char in text if char in "\t\n\r" or (char >= " " and not "\ufffe" <= char <= "\uffff"))
