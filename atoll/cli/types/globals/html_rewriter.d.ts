// https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/

interface ContentOptions {
  html?: boolean;
}

type HTMLContent = string | ReadableStream | Response;

interface Element {
  tagName: string;
  readonly attributes: IterableIterator<[string, string]>;
  readonly removed: boolean;
  readonly namespaceURI: string;
  getAttribute(name: string): string | null;
  hasAttribute(name: string): boolean;
  setAttribute(name: string, value: string): this;
  removeAttribute(name: string): this;
  before(content: HTMLContent, options?: ContentOptions): this;
  after(content: HTMLContent, options?: ContentOptions): this;
  prepend(content: HTMLContent, options?: ContentOptions): this;
  append(content: HTMLContent, options?: ContentOptions): this;
  replace(content: HTMLContent, options?: ContentOptions): this;
  setInnerContent(content: HTMLContent, options?: ContentOptions): this;
  remove(): this;
  removeAndKeepContent(): this;
  onEndTag(handler: (tag: EndTag) => void | Promise<void>): void;
}

interface EndTag {
  name: string;
  before(content: HTMLContent, options?: ContentOptions): this;
  after(content: HTMLContent, options?: ContentOptions): this;
  remove(): this;
}

interface Comment {
  text: string;
  readonly removed: boolean;
  before(content: string, options?: ContentOptions): this;
  after(content: string, options?: ContentOptions): this;
  replace(content: string, options?: ContentOptions): this;
  remove(): this;
}

interface Text {
  readonly text: string;
  readonly lastInTextNode: boolean;
  readonly removed: boolean;
  before(content: HTMLContent, options?: ContentOptions): this;
  after(content: HTMLContent, options?: ContentOptions): this;
  replace(content: HTMLContent, options?: ContentOptions): this;
  remove(): this;
}

interface Doctype {
  readonly name: string | null;
  readonly publicId: string | null;
  readonly systemId: string | null;
}

interface DocumentEnd {
  append(content: HTMLContent, options?: ContentOptions): this;
}

interface HTMLRewriterElementContentHandlers {
  element?(element: Element): void | Promise<void>;
  comments?(comment: Comment): void | Promise<void>;
  text?(text: Text): void | Promise<void>;
}

interface HTMLRewriterDocumentContentHandlers {
  doctype?(doctype: Doctype): void | Promise<void>;
  comments?(comment: Comment): void | Promise<void>;
  text?(text: Text): void | Promise<void>;
  end?(end: DocumentEnd): void | Promise<void>;
}

declare class HTMLRewriter {
  constructor();
  on(selector: string, handlers: HTMLRewriterElementContentHandlers): HTMLRewriter;
  onDocument(handlers: HTMLRewriterDocumentContentHandlers): HTMLRewriter;
  transform(response: Response): Response;
}
