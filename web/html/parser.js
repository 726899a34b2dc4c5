// An instance of the HTML parser: lol-html, compiled to WebAssembly by npm's html-rewriter-wasm.
//
// The module was made with wasm-bindgen and asyncify. Objects travel as indexes of a table, strings as pointers and lengths. If a
// handler returns a promise, the module unwinds its stack into its memory, returns, and is called again when the promise is settled.
// An instance parses one document at a time, so there is one stack.
import { native } from "../internal/native.js";
import { decodeTextKeepingMark, encodeText } from "../internal/text.js";
import { instantiateParser } from "../wasm.js";

const { apply } = Reflect;
const NOTHING = Symbol("no error");
const UNWINDING = 1;
const STACK = 32; // slots of the table for borrowed objects
const FIRST_FREE = STACK + 4; // after undefined, null, true and false
const STACK_BYTES = 1_024; // that the module reserves for its unwound stack, after two pointers
const KEPT_BYTES = 2 << 20; // an instance that has grown more is not used again
const SOME_BYTES = 4 << 20; // memory of an instance that may have reached its bound

const HTML = { html: true };
const NOT_HTML = { html: false };

export const MEMORY_EXCEEDED = "Parser error: The memory limit has been exceeded.";

let idle = null; // an instance that is not in use

export class HtmlParser {
  #table = new Array(STACK).fill(undefined).concat([undefined, null, true, false]);
  #free = FIRST_FREE; // the first free slot; each free slot has the next one
  #borrowed = STACK;
  #length = 0; // of the string or bytes that were copied last
  #bytes = null; // over the module's memory
  #wasm;
  #rewriter = 0;
  #unwound = 0; // where the stack is kept
  #pending = null; // the promise that the module waits for
  #thrown = NOTHING; // what a handler has thrown
  #isBroken = false;

  /** An instance, new or used before. */
  static take() {
    const taken = idle ?? new HtmlParser();
    idle = null;
    return taken;
  }

  constructor() {
    this.#wasm = instantiateParser(native.htmlRewriterModule(), { __wbindgen_placeholder__: this.#imports() });
  }

  /** The document is over: keep the instance for another one, if it is small and whole. */
  giveBack() {
    if (this.#isBroken || this.#wasm.memory.buffer.byteLength > KEPT_BYTES) return;
    if (this.#rewriter !== 0) this.#wasm.__wbg_htmlrewriter_free(this.#rewriter);
    this.#rewriter = 0;
    if (this.#borrowed === STACK) idle = this;
  }

  // --- one document ---

  /** Begins a document. `sink(bytes)` gets the output. */
  begin(sink, enableEsiTags) {
    this.#table[--this.#borrowed] = sink;
    try {
      this.#rewriter = this.#wasm.htmlrewriter_new(this.#borrowed, this.#add({ enableEsiTags }));
    } finally {
      this.#table[this.#borrowed++] = undefined;
    }
    this.#unwound = this.#wasm.htmlrewriter_asyncify_stack_ptr(this.#rewriter);
  }

  /** `handlers`: functions of a pointer. Throws TypeError if the selector is invalid. */
  on(selector, handlers) {
    this.#guarded(() => this.#wasm.htmlrewriter_on(this.#rewriter, this.#toWasm(selector), this.#length, this.#add(handlers)));
  }

  onDocument(handlers) {
    this.#guarded(() => this.#wasm.htmlrewriter_onDocument(this.#rewriter, this.#add(handlers)));
  }

  write(bytes) {
    return this.#run(this.#wasm.htmlrewriter_write, this.#rewriter, this.#copied(bytes), bytes.length);
  }

  end() {
    return this.#run(this.#wasm.htmlrewriter_end, this.#rewriter);
  }

  async #run(step, ...args) {
    this.#guarded(() => step(...args));
    while (this.#wasm.asyncify_get_state() === UNWINDING) {
      this.#wasm.asyncify_stop_unwind();
      const promise = this.#pending;
      this.#pending = null;
      this.#isBroken = true; // if it is rejected or never settled
      await promise;
      this.#isBroken = false;
      this.#wasm.asyncify_start_rewind(this.#unwound);
      this.#guarded(step);
    }
  }

  #guarded(act) {
    try {
      return act();
    } catch (error) {
      this.#isBroken = true;
      const thrown = this.#thrown;
      this.#thrown = NOTHING;
      if (thrown !== NOTHING) throw thrown;
      throw this.#inWords(error);
    }
  }

  #inWords(error) {
    if (error instanceof TypeError || error instanceof RangeError) return error;
    if (this.#wasm.memory.buffer.byteLength > SOME_BYTES) return new TypeError(MEMORY_EXCEEDED);
    return new TypeError("Parser error: the document cannot be parsed.");
  }

  // --- tokens: `name` is that of an export ---

  call(name, pointer) {
    try {
      return this.#wasm[name](pointer);
    } catch (error) {
      throw this.#tokenError(error);
    }
  }

  /** A method that inserts content. */
  insert(name, pointer, content, html) {
    try {
      this.#wasm[name](pointer, this.#toWasm(content), this.#length, this.#add(html ? HTML : NOT_HTML));
    } catch (error) {
      throw this.#tokenError(error);
    }
  }

  callWithText(name, pointer, first, second = undefined) {
    try {
      const start = this.#toWasm(first);
      const length = this.#length;
      if (second === undefined) return this.#wasm[name](pointer, start, length);
      return this.#wasm[name](pointer, start, length, this.#toWasm(second), this.#length);
    } catch (error) {
      throw this.#tokenError(error);
    }
  }

  callWithFunction(name, pointer, handler) {
    try {
      this.#wasm[name](pointer, this.#add(handler));
    } catch (error) {
      throw this.#tokenError(error);
    }
  }

  /** A method that returns an object. */
  object(name, pointer, text = undefined) {
    return this.#take(text === undefined ? this.call(name, pointer) : this.callWithText(name, pointer, text));
  }

  /** A method that returns a string. */
  text(name, pointer) {
    const wasm = this.#wasm;
    try {
      const result = wasm.__wbindgen_add_to_stack_pointer(-16);
      wasm[name](result, pointer);
      const [start, length] = new Uint32Array(wasm.memory.buffer, result, 2);
      const text = this.#fromWasm(start, length);
      wasm.__wbindgen_free(start, length);
      wasm.__wbindgen_add_to_stack_pointer(16);
      return text;
    } catch (error) {
      throw this.#tokenError(error);
    }
  }

  // An error of a token leaves the parser as it was, unless the module has stopped.
  #tokenError(error) {
    if (error instanceof TypeError) return error;
    this.#isBroken = true;
    return this.#inWords(error);
  }

  // --- the border ---

  #add(object) {
    const index = this.#free;
    const table = this.#table;
    this.#free = index < table.length ? table[index] : index + 1;
    table[index] = object;
    return index;
  }

  #drop(index) {
    if (index < FIRST_FREE) return;
    this.#table[index] = this.#free;
    this.#free = index;
  }

  #take(index) {
    const object = this.#table[index];
    this.#drop(index);
    return object;
  }

  #memory() {
    if (this.#bytes === null || this.#bytes.length === 0) this.#bytes = new Uint8Array(this.#wasm.memory.buffer); // it has grown
    return this.#bytes;
  }

  #fromWasm(start, length) {
    return decodeTextKeepingMark(this.#memory().subarray(start >>> 0, (start >>> 0) + (length >>> 0)));
  }

  /** Copies bytes into the module, which frees them. Returns where; their number is in #length. */
  #copied(bytes) {
    const start = this.#wasm.__wbindgen_malloc(bytes.length) >>> 0;
    this.#memory().set(bytes, start);
    this.#length = bytes.length;
    return start;
  }

  #toWasm(text) {
    return this.#copied(encodeText(text));
  }

  #imports() {
    const object = (index) => this.#table[index];
    const add = (value) => this.#add(value);
    const member = (name) => (index) => {
      const value = object(index)[name];
      return value === undefined || value === null ? 0 : add(value);
    };
    const flag = (name) => (index) => {
      const value = object(index)[name];
      return value === undefined || value === null ? 0xffffff : value ? 1 : 0;
    };
    const write = (at, text) => {
      const start = this.#toWasm(text);
      new Uint32Array(this.#wasm.memory.buffer, at >>> 0, 2).set([start, this.#length]);
    };
    return {
      __wbindgen_object_drop_ref: (index) => this.#drop(index),
      __wbindgen_object_clone_ref: (index) => add(object(index)),
      __wbindgen_string_new: (start, length) => add(this.#fromWasm(start, length)),
      __wbindgen_debug_string: (at) => write(at, ""),
      __wbindgen_throw: (start, length) => {
        throw new TypeError(this.#fromWasm(start, length));
      },
      __wbindgen_rethrow: (index) => {
        throw this.#take(index);
      },
      __wbindgen_memory: () => add(this.#wasm.memory),
      // A token is its pointer.
      __wbg_element_new: add,
      __wbg_endtag_new: add,
      __wbg_comment_new: add,
      __wbg_textchunk_new: add,
      __wbg_doctype_new: add,
      __wbg_documentend_new: add,
      __wbg_element_c38470ed972aea27: member("element"),
      __wbg_comments_ba86bc03331d9378: member("comments"),
      __wbg_comments_94d876f6c0502e82: member("comments"),
      __wbg_text_7800bf26cb443911: member("text"),
      __wbg_text_4606a16c30e4ae91: member("text"),
      __wbg_doctype_ac58c0964a59b61b: member("doctype"),
      __wbg_end_34efb9402eac8a4e: member("end"),
      __wbg_html_cd9a0f328493678b: flag("html"),
      __wbg_enableEsiTags_de6b91cc61a25874: flag("enableEsiTags"),
      __wbg_String_60c4ba333b5ca1c6: (at, index) => write(at, `${object(index)}`),
      __wbg_new_4fee7e2900033464: () => add([]),
      __wbg_push_ba9b5e3c25cff8f9: (list, item) => {
        const array = object(list);
        array[array.length] = object(item);
        return array.length;
      },
      __wbg_new_917809a3e20a4b00: (start, length) => add(new TypeError(this.#fromWasm(start, length))),
      __wbg_instanceof_Promise_c6535fc791fcc4d2: (index) => (object(index) === undefined ? 0 : 1), // handlers return nothing else
      __wbg_buffer_89a8560ab6a3d9c6: (index) => add(object(index).buffer),
      __wbg_newwithbyteoffsetandlength_e45d8b33c02dc3b5: (buffer, start, length) =>
        add(new Uint8Array(object(buffer), start >>> 0, length >>> 0)),
      __wbg_new_bd2e1d010adb8a1a: (view) => add(new Uint8Array(object(view))),
      __wbg_call_6c4ea719458624eb: (callee, self, argument) => {
        try {
          return add(apply(object(callee), undefined, [object(argument)]));
        } catch (error) {
          this.#thrown = error;
          this.#wasm.__wbindgen_exn_store(add(error));
          return 0;
        }
      },
      __wbg_awaitPromise_39a1101fd8518869: (stack, promise) => {
        const wasm = this.#wasm;
        if (wasm.asyncify_get_state() !== 0) {
          wasm.asyncify_stop_rewind();
          return;
        }
        new Uint32Array(wasm.memory.buffer, stack, 2).set([stack + 8, stack + STACK_BYTES]);
        wasm.asyncify_start_unwind(stack);
        this.#pending = object(promise);
      },
    };
  }
}
