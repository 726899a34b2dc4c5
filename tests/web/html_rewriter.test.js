// https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/
import { deepEqual, equal, ok, rejects, throws } from "./assert.js";

const page = (text, init) => new Response(text, { headers: { "Content-Type": "text/html" }, ...init });
const INVALID =
  "This content token is no longer valid. Content tokens are only valid during the execution of the relevant content handler.";
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The output for one selector with handlers. */
const rewritten = (text, selector, handlers) => new HTMLRewriter().on(selector, handlers).transform(page(text)).text();
const element = (text, selector, handler) => rewritten(text, selector, { element: handler });

function streamOf(...pieces) {
  return new ReadableStream({
    async pull(controller) {
      await wait(0);
      if (pieces.length === 0) controller.close();
      else controller.enqueue(typeof pieces[0] === "string" ? new TextEncoder().encode(pieces.shift()) : pieces.shift());
    },
  });
}

function thrown(act) {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

export const tests = {
  "a response keeps its status and headers, and one without a body stays itself": async () => {
    const given = page("<p>hello</p>", { status: 201, statusText: "Made", headers: { "x-a": "b" } });
    const response = new HTMLRewriter().transform(given);
    ok(response !== given && response instanceof Response);
    deepEqual([response.status, response.statusText, response.headers.get("x-a")], [201, "Made", "b"]);
    equal(await response.text(), "<p>hello</p>");
    ok(given.bodyUsed);
    const empty = new Response(null);
    equal(new HTMLRewriter().transform(empty), empty);
  },
  "what is no response is refused": async () => {
    const rewriter = new HTMLRewriter();
    equal(thrown(() => rewriter.transform(Response.error())).message, "HTMLRewriter cannot transform an error response");
    throws(() => rewriter.transform("<p>"), TypeError);
    throws(() => rewriter.transform(), TypeError);
    const used = page("<p>");
    await used.text();
    throws(() => rewriter.transform(used), TypeError);
    const locked = page("<p>");
    locked.body.getReader();
    throws(() => rewriter.transform(locked), TypeError);
  },
  "attributes are read, set and removed": async () => {
    const seen = [];
    const out = await element('<a href="/x" CLASS="big" empty>t</a>', "a", (a) => {
      seen.push(a.tagName, a.getAttribute("href"), a.getAttribute("class"), a.getAttribute("none"), a.hasAttribute("empty"));
      seen.push([...a.attributes], a.namespaceURI, a.removed);
      equal(a.setAttribute("href", 'a"b'), a);
      a.removeAttribute("empty").setAttribute("new", "1");
    });
    const attributes = [["href", "/x"], ["class", "big"], ["empty", ""]];
    deepEqual(seen, ["a", "/x", "big", null, true, attributes, "http://www.w3.org/1999/xhtml", false]);
    equal(out, '<a href="a&quot;b" CLASS="big" new="1">t</a>');
  },
  "an iterator of attributes ends with its element, and with a change": async () => {
    let kept;
    await element('<a b="1" c="2"></a>', "a", (a) => {
      kept = a.attributes;
      const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
      equal(Object.getPrototypeOf(Object.getPrototypeOf(kept)), IteratorPrototype);
      const all = a.attributes;
      for (const [name, value] of all) ok(name && value);
      deepEqual([all.next(), all.next()], [{ done: true, value: undefined }, { done: true, value: undefined }]);
      const other = a.attributes;
      other.next();
      a.setAttribute("d", "3");
      equal(
        thrown(() => other.next()).message,
        "The attributes of this element have been modified during iteration. You must create a new iterator after modifying attributes.",
      );
    });
    equal(thrown(() => kept.next()).message, INVALID);
  },
  "content is inserted at every place, and escaped unless it is HTML": async () => {
    equal(
      await element("<p>x</p>", "p", (p) => {
        p.before("<1>").before("<2>", { html: false }).before("<i>", { html: true }).before("<3>", null);
        p.prepend("b").prepend("a").append("<e>", { html: true }).append("&").after("y").after("z");
      }),
      "&lt;1&gt;&lt;2&gt;<i>&lt;3&gt;<p>abx<e>&amp;</p>zy",
    );
    equal(await element("<p>x</p>", "p", (p) => p.replace("<b>", { html: true })), "<b>");
    equal(await element("<p>x<b>y</b></p>", "p", (p) => p.setInnerContent("z")), "<p>z</p>");
    equal(await element("<p>x</p>q", "p", (p) => p.remove() && ok(p.removed)), "q");
    equal(await element("<p>x</p>", "p", (p) => p.removeAndKeepContent()), "x");
    equal(await element("<p>x</p>", "p", (p) => (p.tagName = "q")), "<q>x</q>");
    equal(await element("<p></p>", "p", (p) => p.after(42).before(null)), "null<p></p>42");
    equal(await element("<p>", "p", (p) => p.append("x").after("y")), "<p>", "without an end tag there is no place for it");
  },
  "a wrong name is an error of the parser, and the element goes on": async () => {
    const errors = [];
    const out = await element("<p>x</p>", "p", (p) => {
      errors.push(thrown(() => (p.tagName = "a b")), thrown(() => p.setAttribute("a b", "")), thrown(() => (p.tagName = "")));
      p.tagName = "q";
    });
    ok(errors.every((error) => error instanceof TypeError));
    equal(errors[0].message, "Parser error: ` ` character is forbidden in the tag name");
    equal(errors[1].message, "Parser error: ` ` character is forbidden in the attribute name");
    equal(errors[2].message, "Parser error: Tag name can't be empty.");
    equal(out, "<q>x</q>");
  },
  "end tags": async () => {
    const seen = [];
    equal(
      await element("<p>x</p><br>", "*", (e) => {
        if (e.tagName === "br") return;
        e.onEndTag((end) => {
          seen.push(end.name);
          end.before("<", { html: false }).after("!").name = "q";
        });
      }),
      "<p>x&lt;</q>!<br>",
    );
    deepEqual(seen, ["p"]);
    equal(await element("<p>x</p>", "p", (e) => e.onEndTag(async (end) => void (await wait(1), end.remove()))), "<p>x");
  },
  "comments, text and the doctype": async () => {
    const seen = [];
    const out = await new HTMLRewriter()
      .onDocument({
        doctype: (doctype) => void seen.push(doctype.name, doctype.publicId, doctype.systemId),
        comments(comment) {
          if (comment.text === "drop") ok(comment.remove().removed);
          else if (comment.text === "swap") comment.replace("<s>", { html: true }).before("1").after("2");
          else comment.text = `${comment.text}!`;
        },
        text(text) {
          if (text.text === "old") text.replace("new").before("<").after(">");
          if (text.text === "gone") text.remove();
          seen.push(text.lastInTextNode);
        },
        end: (end) => void end.append("<end>", { html: true }),
      })
      .transform(page('<!DOCTYPE html PUBLIC "-//W3C//DTD"><!--drop--><!--swap--><!--kept--><p>old</p>gone'))
      .text();
    equal(out, '<!DOCTYPE html PUBLIC "-//W3C//DTD">1<s>2<!--kept!--><p>&lt;new&gt;</p><end>');
    deepEqual(seen, ["html", "-//W3C//DTD", null, false, true, false, true]);
    let error;
    await rewritten("<p><!--a--></p>", "p", { comments: (c) => void (error = thrown(() => c.replace(new Response("x")))) });
    ok(error instanceof TypeError && error.message.startsWith("Replacing HTML content using a ReadableStream or Response"));
  },
  "selectors": async () => {
    const html = '<div id="a" class="x y"><p lang="en-US">1</p><p data-k="VaLue">2</p></div><section><p>3</p></section>';
    const cases = {
      "*": 5, div: 1, ".x.y": 1, "#a": 1, "[lang]": 1, '[data-k="value" i]': 1, '[data-k="value" s]': 0, '[class~="y"]': 1, '[lang|="en"]': 1,
      '[data-k^="Va"]': 1, '[data-k$="ue"]': 1, '[data-k*="Lu"]': 1, "p:nth-child(2)": 1, "p:first-child": 2, "p:nth-of-type(2n)": 1,
      "p:first-of-type": 2, "p:not([lang])": 2, "div p": 2, "div > p": 2, "section, div": 2,
    }; // prettier-ignore
    for (const [selector, count] of Object.entries(cases)) {
      let found = 0;
      await element(html, selector, () => void found++);
      equal(found, count, selector);
    }
  },
  "an invalid selector throws where it is given": () => {
    for (const selector of ["", "p:hover", "p + q", "[", "p::before", "..a", "p:nth-child(x)"]) {
      const error = thrown(() => new HTMLRewriter().on(selector, {}));
      ok(error instanceof TypeError && error.message.startsWith("Parser error: "), `${selector}: ${error}`);
    }
    throws(() => new HTMLRewriter().on("p"), TypeError);
    throws(() => new HTMLRewriter().on("p", null), TypeError);
    throws(() => new HTMLRewriter().on("p", { element: 1 }), TypeError);
    throws(() => new HTMLRewriter().onDocument({ end: {} }), TypeError);
    equal(String(new HTMLRewriter()), "[object HTMLRewriter]");
  },
  "asynchronous handlers stop the parser, also many at once": async () => {
    const order = [];
    const rewriter = new HTMLRewriter().on("p", {
      async element(p) {
        order.push(`begin ${p.getAttribute("n")}`);
        await wait(1);
        p.setInnerContent(`<${p.getAttribute("n")}>`);
        order.push(`end ${p.getAttribute("n")}`);
      },
    });
    const html = "<p n=1></p><p n=2>x</p>";
    equal(await rewriter.transform(page(html)).text(), "<p n=1>&lt;1&gt;</p><p n=2>&lt;2&gt;</p>");
    deepEqual(order, ["begin 1", "end 1", "begin 2", "end 2"]);
    const all = await Promise.all(Array.from({ length: 10 }, () => rewriter.transform(page(html)).text()));
    ok(all.every((text) => text === all[0]));
    const thenable = { then: (resolve) => setTimeout(resolve, 1) };
    equal(await element("<p>a</p>", "p", (p) => p.append("b") && thenable), "<p>ab</p>");
  },
  "two transforms wait for each other": async () => {
    const { promise, resolve } = Promise.withResolvers();
    const [one, two] = await Promise.all([
      element("<p>1</p>", "p", async (p) => void (await promise, p.append("a"))),
      element("<p>2</p>", "p", async (p) => void (resolve(), await promise, p.append("b"))),
    ]);
    deepEqual([one, two], ["<p>1a</p>", "<p>2b</p>"]);
  },
  "handlers see their object as this, and the store of the transform": async () => {
    const { AsyncLocalStorage } = await import("node:async_hooks");
    const storage = new AsyncLocalStorage();
    class Handlers {
      seen = [];
      element() {
        this.seen.push(storage.getStore());
      }
    }
    const handlers = new Handlers();
    const rewriter = new HTMLRewriter().on("p", handlers);
    await storage.run("inside", () => rewriter.transform(page("<p>"))).text();
    deepEqual(handlers.seen, ["inside"]);
  },
  "tokens are not valid after their handler": async () => {
    const kept = [];
    await new HTMLRewriter()
      .on("p", { element: (e) => void kept.push(e), comments: (c) => void kept.push(c), text: (t) => void kept.push(t) })
      .onDocument({ doctype: (d) => void kept.push(d), end: (e) => void kept.push(e) })
      .transform(page("<!doctype html><p>x<!--y--></p>"))
      .text();
    const uses = { Element: (t) => t.tagName, Comment: (t) => t.text, Text: (t) => t.text, Doctype: (t) => t.name, DocumentEnd: (t) => t.append("x") };
    for (const token of kept) {
      const error = thrown(() => uses[token[Symbol.toStringTag]](token));
      ok(error instanceof TypeError);
      equal(error.message, INVALID);
    }
    ok(kept.length >= 6);
    let first;
    await new HTMLRewriter()
      .on("p", { element: (e) => void ((first = e).mine = 1) })
      .on("p", { element: (e) => ok(e !== first && e.mine === undefined) })
      .transform(page("<p>"))
      .text();
  },
  "what a handler throws is the error of the body": async () => {
    const boom = new RangeError("boom");
    const fail = () => {
      throw boom;
    };
    for (const handler of [fail, async () => fail(), () => Promise.reject(boom)]) {
      const response = new HTMLRewriter().on("p", { text: handler }).transform(page("<p>x</p>"));
      const error = await response.text().then(() => null, (e) => e);
      equal(error, boom);
    }
    equal(await element("<p>still</p>", "p", (p) => p.append(" here")), "<p>still here</p>");
    let cancelled;
    const source = new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode("<p>")),
      cancel: (reason) => void (cancelled = reason),
    });
    await rejects(new HTMLRewriter().on("p", { element: fail }).transform(page(source)).text(), RangeError);
    equal(cancelled, boom);
  },
  "content may be a stream or a response": async () => {
    const of = (content, options) => element("<p>x</p>", "p", (p) => p.prepend(content, options));
    equal(await of(streamOf("<b>", "&")), "<p>&lt;b&gt;&amp;x</p>");
    equal(await of(streamOf("<b>", "ä"), { html: true }), "<p><b>äx</p>");
    equal(await of(new Response("<i>"), { html: true }), "<p><i>x</p>");
    equal(await of(new Response(null)), "<p>x</p>");
    equal(
      await element("<p>x</p>", "p", (p) => {
        p.before(streamOf("1")).before("2").before(new Response("3"));
        p.replace(streamOf("never")).replace(streamOf("4"));
        p.after(streamOf("5"));
      }),
      "12345",
    );
    const [a, b] = [new TextEncoder().encode("ä"), new TextEncoder().encode("€")];
    equal(await of(streamOf(a.slice(0, 1), a.slice(1), b.slice(0, 2), b.slice(2))), "<p>ä€x</p>");
    await rejects(of(streamOf(new Uint8Array([0xe2, 0x28, 0xa1]))), TypeError);
    equal((await of(streamOf(new Uint8Array([0xe2]))).catch((e) => e)).message, "Parser error: Invalid UTF-8");
    const broken = new ReadableStream({ pull: (controller) => controller.error(new RangeError("source")) });
    await rejects(of(broken), RangeError);
  },
  "long content is written in pieces": async () => {
    const long = "<€😀>".repeat(100_000);
    equal(await element("<p>x</p>", "p", (p) => p.append(long, { html: true })), `<p>x${long}</p>`);
    equal((await element("<p>x</p>", "p", (p) => p.append(long))).length, "<p>x</p>".length + "&lt;€😀&gt;".length * 100_000);
  },
  "input in any pieces, and characters across them": async () => {
    const bytes = new TextEncoder().encode("<p title='ä€'>ö😀</p><!-- ü -->");
    for (const size of [1, 2, 3, 7]) {
      const pieces = [];
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
      let title;
      let text = "";
      const out = await new HTMLRewriter()
        .on("p", { element: (p) => void (title = p.getAttribute("title")), text: (t) => void (text += t.text) })
        .transform(page(streamOf(...pieces)))
        .text();
      deepEqual([out, title, text], [new TextDecoder().decode(bytes), "ä€", "ö😀"]);
    }
  },
  "the output begins before the input ends, and waits for its reader": async () => {
    let pulled = 0;
    const piece = new TextEncoder().encode(`<p>${"x".repeat(8_000)}</p>`);
    const source = new ReadableStream({
      pull(controller) {
        pulled++;
        controller.enqueue(piece.slice());
      },
    });
    const reader = new HTMLRewriter().on("p", { element: (p) => void p.append("!") }).transform(page(source)).body.getReader();
    const { value } = await reader.read();
    ok(value.length > 0);
    await wait(20);
    const held = pulled;
    await wait(20);
    equal(pulled, held, "nothing more is read while nobody reads the output");
    ok(held < 30, `${held} pieces`);
    await reader.cancel();
    const byob = new HTMLRewriter().transform(page("<p>hello</p>")).body.getReader({ mode: "byob" });
    equal(new TextDecoder().decode((await byob.read(new Uint8Array(5))).value), "<p>he");
  },
  "writes are taken before anybody reads": async () => {
    const { readable, writable } = new TransformStream();
    const response = new HTMLRewriter().on("*", { element: (e) => void e.prepend("foo ") }).transform(page(readable));
    const writer = writable.getWriter();
    for (const text of ["<html>", "bar", "</html>"]) await writer.write(new TextEncoder().encode(text));
    await writer.close();
    equal(await response.text(), "<html>foo bar</html>");
  },
  "a cancelled output cancels the input after the piece in progress": async () => {
    const { readable, writable } = new IdentityTransformStream();
    const response = new HTMLRewriter().transform(page(readable));
    const boom = new Error("boom");
    const cancelled = response.body.cancel(boom);
    const writer = writable.getWriter();
    await writer.write(new TextEncoder().encode("test"));
    await rejects(writer.write(new TextEncoder().encode("test")), Error);
    await cancelled;
  },
  "charsets": async () => {
    const of = (charset, bytes, handler = () => {}) =>
      new HTMLRewriter().on("p", { text: handler }).transform(
        new Response(new Uint8Array(bytes), { headers: { "content-type": `text/html; charset=${charset}` } }),
      );
    equal(
      thrown(() => of("invalid", [0x61])).message,
      "Parser error: Unknown character encoding has been provided.",
    );
    ok(thrown(() => of("utf-16le", [0x61])).message.startsWith("Parser error: "));
    throws(() => of("gbk", [0x61]), TypeError);
    const seen = [];
    const latin = await of("windows-1252", [0x3c, 0x70, 0x3e, 0xe4, 0x80], (t) => void (seen.push(t.text), t.text && t.after("ö☃"))).bytes();
    deepEqual(seen, ["ä€", ""]);
    deepEqual([...latin], [0x3c, 0x70, 0x3e, 0xe4, 0x80, 0xf6, ...new TextEncoder().encode("&#9731;")]);
    equal(await of("UTF-8", new TextEncoder().encode("ä")).text(), "ä");
  },
  "svg, templates and raw text": async () => {
    const spaces = [];
    await element("<svg><a /></svg><math><a /></math>", "a", (e) => void spaces.push(e.namespaceURI));
    deepEqual(spaces, ["http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"]);
    let count = 0;
    await element("<script>'<p>'</script><textarea><p></textarea><title><p></title><!-- <p> -->", "p", () => void count++);
    equal(count, 0);
    equal(await element("<p>&amp;&lt;</p>", "p", () => {}), "<p>&amp;&lt;</p>");
    let text = "";
    await rewritten("<p>&amp;</p>", "p", { text: (t) => void (text += t.text) });
    equal(text, "&amp;", "entities are not decoded");
  },
  "a rewriter and its parser are used many times": async () => {
    const rewriter = new HTMLRewriter().on("li", { element: (e) => void e.setAttribute("n", "1"), text: (t) => void t.text });
    const html = `<ul>${"<li>x</li>".repeat(2_000)}</ul>`;
    const want = html.replaceAll("<li>", '<li n="1">');
    for (let round = 0; round < 20; round++) equal(await rewriter.transform(page(html)).text(), want);
  },
  "a worker's changes of built-ins have no effect on the parser": async () => {
    const { WebAssembly: saved } = globalThis;
    globalThis.WebAssembly = { Instance: class {}, Module: class {} };
    try {
      const all = await Promise.all([1, 2, 3].map((n) => element("<p></p>", "p", async (p) => void (await wait(1), p.append(n)))));
      deepEqual(all, ["<p>1</p>", "<p>2</p>", "<p>3</p>"]);
    } finally {
      globalThis.WebAssembly = saved;
    }
  },
};
