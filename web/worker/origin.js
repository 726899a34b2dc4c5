// The server behind a worker, if it has one (atoll/bindings/origin): a request that the worker fails to answer may go there.
let origin = null; // (request) => promise of its response

export function setOrigin(send) {
  origin = send;
}

/** Forgets the origin: the isolate gets a worker, whose bindings set another. */
export function noOrigin() {
  origin = null;
}

/**
 * The response of the origin to a request that the worker failed to answer; null if there is no origin, or if the body of the
 * request has been read. https://developers.cloudflare.com/workers/runtime-apis/context/#passthroughonexception
 */
export function passToOrigin(request) {
  return origin === null || request.bodyUsed ? null : origin(request);
}
