// The streams library looks for DOMException on the global object when it is loaded, before globals.js puts it there.
import { DOMException } from "../dom/exception.js";

globalThis.DOMException = DOMException;
