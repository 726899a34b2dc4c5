import { deepEqual, equal, ok, throws } from "./assert.js";

/** A stream of these pieces of text. */
function streamOf(...pieces) {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

/** The events of a source until its first error, for the given event names. */
function heard(source, ...types) {
  return new Promise((resolve) => {
    const events = [];
    for (const type of ["open", "message", ...types]) {
      source.addEventListener(type, ({ data, lastEventId }) => events.push(data === undefined ? [type] : [type, data, lastEventId]));
    }
    source.addEventListener("error", () => resolve(events));
  });
}

/** A service that answers each request with the next of these, and records the requests. */
function service(...answers) {
  const requests = [];
  return {
    requests,
    fetch: (url, init) => {
      requests.push(new Request(url, init));
      const next = answers.shift();
      return next === undefined ? new Response(null, { status: 204 }) : next;
    },
  };
}

const events = (text) => new Response(text, { headers: { "content-type": "text/event-stream; charset=utf-8" } });

export const tests = {
  "an available stream becomes events": async () => {
    const source = EventSource.from(streamOf(": hello\n\ndata: one\ndata:two\nid: 7\n\nevent: other\ndata\n\nevent: nothing\n\ndata: lost"));
    equal(source.readyState, EventSource.OPEN);
    deepEqual(await heard(source, "other", "nothing"), [["open"], ["message", "one\ntwo", "7"], ["other", "", "7"]]);
    equal(source.readyState, EventSource.CLOSED);
  },

  "lines end with CR, LF or both, wherever the stream is cut": async () => {
    const text = "\uFEFFdata: a\r\rdata: b\r\n\r\ndata: c\n\ndata: \u{1F30A}\r\n\r\n";
    const bytes = new TextEncoder().encode(text);
    const single = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    const expected = ["a", "b", "c", "\u{1F30A}"];
    deepEqual((await heard(EventSource.from(streamOf(text)))).slice(1).map(([, data]) => data), expected);
    deepEqual((await heard(EventSource.from(single))).slice(1).map(([, data]) => data), expected);
  },

  "it reconnects after the server's retry time with the last event id": async () => {
    const fetcher = service(events("retry: 1\nid: caf\u00e9\ndata: first\n\nid: of an event that does not end\n"), events("data: second\n\n"));
    const source = new EventSource("https://example.com/news", { fetcher });
    const states = [];
    const got = [];
    source.onmessage = ({ data, origin }) => got.push(data, origin);
    await new Promise((resolve) => {
      source.onerror = () => states.push(source.readyState) && source.readyState === EventSource.CLOSED && resolve();
    });
    deepEqual(got, ["first", "https://example.com", "second", "https://example.com"]);
    // The third answer, 204, ends it.
    deepEqual(states, [EventSource.CONNECTING, EventSource.CONNECTING, EventSource.CLOSED]);
    const { requests } = fetcher;
    equal(requests[0].headers.get("accept"), "text/event-stream");
    equal(requests[0].headers.get("cache-control"), "no-cache");
    deepEqual(requests.map(({ headers }) => headers.get("last-event-id")), [null, "caf\u00c3\u00a9", "caf\u00c3\u00a9"]);
  },

  "reconnects to a lost server back off, even with a retry time of 0": async () => {
    let attempts = 0;
    const fetcher = {
      fetch: () => {
        if (++attempts === 1) return events("retry: 0\n\n");
        throw new TypeError("gone");
      },
    };
    const source = new EventSource("https://example.com/", { fetcher });
    await scheduler.wait(300);
    source.close();
    ok(attempts <= 5, `${attempts} attempts`);
  },

  "an answer of another type or status ends the source": async () => {
    for (const answer of [new Response("data: x\n\n"), new Response("", { status: 500 }), events(null)]) {
      const fetcher = service(answer);
      const source = new EventSource("https://example.com/", { fetcher });
      const error = await new Promise((resolve) => (source.onerror = resolve));
      deepEqual([source.readyState, error instanceof ErrorEvent, fetcher.requests.length], [EventSource.CLOSED, true, 1]);
    }
  },

  "close() takes effect at once, even between received events": async () => {
    const fetcher = service(events("data: 1\n\ndata: 2\n\n"));
    const source = new EventSource("https://example.com/", { fetcher });
    const got = [];
    await new Promise((resolve) => {
      source.onmessage = ({ data }) => {
        got.push(data);
        source.close();
        resolve();
      };
    });
    await scheduler.wait(5);
    deepEqual([got, source.readyState, fetcher.requests[0].signal.aborted], [["1"], EventSource.CLOSED, true]);
  },

  "an invalid address or stream is refused": () => {
    throws(() => new EventSource("/relative"), DOMException);
    throws(() => new EventSource("http://this is invalid/"), DOMException);
    throws(() => new EventSource(), TypeError);
    throws(() => EventSource.from("data: x"), TypeError);
    throws(() => EventSource("https://example.com/"), TypeError);
    ok(EventSource.prototype instanceof EventTarget);
  },
};
