// The streams library reads DOMException from the global object when it is loaded, before globals.js defines it.
import { DOMException } from "../dom/exception.js";

globalThis.DOMException = DOMException;
