// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
import { Utf8Decoder } from "../encoding/decoders.js";

const LINE_END = /\r\n|\n|\r/;

/**
 * Parses bytes into events. Calls `onEvent({ type, data, lastEventId })` for each event and `onRetry(ms)` when the server sets the
 * retry time. `lastEventId` continues from the previous connection.
 */
export class EventStreamParser {
  #decoder = new Utf8Decoder(false, false);
  #endsWithReturn = false; // a line feed that follows belongs to the same line break
  #rest = ""; // the incomplete last line
  #data = "";
  #type = "";
  #id; // takes effect at the end of its event

  constructor(lastEventId, { onEvent, onRetry }) {
    this.#id = this.lastEventId = lastEventId;
    this.onEvent = onEvent;
    this.onRetry = onRetry;
  }

  /** An incomplete event at the end of the stream is dropped, so there is no end() method. */
  write(bytes) {
    let text = this.#decoder.write(bytes);
    if (text === "") return;
    const wasReturn = this.#endsWithReturn;
    this.#endsWithReturn = text.endsWith("\r");
    if (wasReturn && text.startsWith("\n")) text = text.slice(1);
    const lines = text.split(LINE_END);
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) this.#readLine(line);
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation */
  #readLine(line) {
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    if (colon === -1) this.#processField(line, "");
    else this.#processField(line.slice(0, colon), line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1));
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#processField */
  #processField(name, value) {
    if (name === "event") this.#type = value;
    else if (name === "data") this.#data += `${value}\n`;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.onRetry(Number(value));
  }

  /** https://html.spec.whatwg.org/multipage/server-sent-events.html#dispatchMessage */
  #dispatch() {
    const data = this.#data;
    const type = this.#type === "" ? "message" : this.#type;
    this.#data = this.#type = "";
    this.lastEventId = this.#id;
    if (data !== "") this.onEvent({ type, data: data.slice(0, -1), lastEventId: this.lastEventId });
  }
}
