// https://webidl.spec.whatwg.org/#idl-DOMException
import { defineConstants, defineInterface } from "../internal/platform.js";
import { toDOMString } from "../internal/webidl.js";

// Names with a code, in the order of their codes; null for a code that is no longer used.
// https://webidl.spec.whatwg.org/#idl-DOMException-error-names
const NAMES = [
  "IndexSizeError", null, "HierarchyRequestError", "WrongDocumentError", "InvalidCharacterError", null,
  "NoModificationAllowedError", "NotFoundError", "NotSupportedError", "InUseAttributeError", "InvalidStateError",
  "SyntaxError", "InvalidModificationError", "NamespaceError", "InvalidAccessError", null, "TypeMismatchError",
  "SecurityError", "NetworkError", "AbortError", "URLMismatchError", "QuotaExceededError", "TimeoutError",
  "InvalidNodeTypeError", "DataCloneError",
];

const captureStackTrace = Error.captureStackTrace;

/** https://webidl.spec.whatwg.org/#js-DOMException-specialness */
export class DOMException {
  #message;
  #name;

  constructor(message = "", name = "Error") {
    this.#message = toDOMString(message);
    this.#name = toDOMString(name);
    try {
      captureStackTrace(this, new.target);
    } catch {
      // The worker's Error.prepareStackTrace threw, so there is no stack.
    }
  }

  get name() {
    return this.#name;
  }

  get message() {
    return this.#message;
  }

  get code() {
    return NAMES.indexOf(this.#name) + 1;
  }
}

Object.setPrototypeOf(DOMException.prototype, Error.prototype);
defineInterface(DOMException, {
  clone: (exception) => Object.defineProperty(
    new DOMException(exception.message, exception.name),
    "stack",
    { value: exception.stack, writable: true, configurable: true },
  ),
});
defineConstants(DOMException, {
  INDEX_SIZE_ERR: 1, DOMSTRING_SIZE_ERR: 2, HIERARCHY_REQUEST_ERR: 3, WRONG_DOCUMENT_ERR: 4, INVALID_CHARACTER_ERR: 5,
  NO_DATA_ALLOWED_ERR: 6, NO_MODIFICATION_ALLOWED_ERR: 7, NOT_FOUND_ERR: 8, NOT_SUPPORTED_ERR: 9,
  INUSE_ATTRIBUTE_ERR: 10, INVALID_STATE_ERR: 11, SYNTAX_ERR: 12, INVALID_MODIFICATION_ERR: 13, NAMESPACE_ERR: 14,
  INVALID_ACCESS_ERR: 15, VALIDATION_ERR: 16, TYPE_MISMATCH_ERR: 17, SECURITY_ERR: 18, NETWORK_ERR: 19, ABORT_ERR: 20,
  URL_MISMATCH_ERR: 21, QUOTA_EXCEEDED_ERR: 22, TIMEOUT_ERR: 23, INVALID_NODE_TYPE_ERR: 24, DATA_CLONE_ERR: 25,
});

function toQuota(value, what) {
  if (value === undefined) return null;
  const number = Number(value);
  if (!Number.isFinite(number)) throw new TypeError(`QuotaExceededError: ${what} is not a finite number.`);
  if (number < 0) throw new RangeError(`QuotaExceededError: ${what} is negative.`);
  return number;
}

/** https://webidl.spec.whatwg.org/#quotaexceedederror */
export class QuotaExceededError extends DOMException {
  #quota;
  #requested;

  constructor(message = "", options = {}) {
    super(message, "QuotaExceededError");
    this.#quota = toQuota(options?.quota, "quota");
    this.#requested = toQuota(options?.requested, "requested");
    if (this.#quota !== null && this.#requested !== null && this.#requested < this.#quota) {
      throw new RangeError("QuotaExceededError: requested is less than quota.");
    }
  }

  get quota() {
    return this.#quota;
  }

  get requested() {
    return this.#requested;
  }
}

defineInterface(QuotaExceededError, {
  clone: ({ message, quota, requested }) =>
    new QuotaExceededError(message, { quota: quota ?? undefined, requested: requested ?? undefined }),
});
