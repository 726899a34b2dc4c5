// One RPC session: a method call of another worker, and all calls of the stubs that the two workers then hold of each other.
// Both ends are the same, apart from the method call itself, which is question 0 of its caller and travels by an op of its own.
//
//     c  call: id of the question, target, path, arguments       r  answer: id, 1 if the answer is kept, value
//     g  read a property: id, target, path                        t  exception: id, description
//     x  release: how many references, target                     e  the other end is gone; only Python sends it
//
// A target from 0 is an export of the receiver; -1 - id is the answer to a question, which may still be open: the receiver waits
// for it. An answer is kept if it has stubs or a disposer. One that is not kept arrives whole, so what was asked about it is
// answered by the side that asked, and the other side ignores it.
//
// The other end may be hostile: every number it sends is looked up, and tables are bounded.
import { decodeText, encodeText } from "../internal/text.js";
import { readResult, readValue, writeValue } from "../worker/parcel.js";
import { describeThrown, makeThrown } from "../worker/thrown.js";
import { movesParameters } from "./flags.js";
import { LocalCap } from "./local.js";
import { MAIN, Question, RemoteCap } from "./question.js";
import { handleOf, makeStub } from "./stubs.js";

const NOTHING = new Uint8Array(0);
const NONE = new Map(); // a table that was never written to: most sessions are one call with plain values
const MOST_CAPS = 10_000; // exports or imports of a session
const MOST_RUNNING = 1_000; // calls of the other end that run here

function brokenRules() {
  return new Error("The other worker broke the rules of RPC.");
}

export class Session {
  #exports = NONE; // number -> { cap, count }
  #numbers = NONE; // exported cap -> its number
  #imports = NONE; // number -> RemoteCap
  #main = null; // the question that the method call is, while it is open
  #questions = NONE; // id -> Question, all others
  #answers = NONE; // id -> { cap }, a promise of it while the call runs
  #kept = 0; // answers that the other end has to release
  #running = 0;
  #lastExport = 0;
  #lastQuestion = MAIN;
  #failure = null; // { error } once it has ended
  #endAfterMain = null; // the error to end with, once the method call is answered
  #pinned = null; // capabilities of the other end in the answer that is being written
  #onFree = null;

  constructor(channel, number) {
    this.channel = channel;
    this.number = number;
  }

  get hasExports() {
    return this.#exports.size > 0;
  }

  get isInUse() {
    return this.expects || this.#imports.size > 0 || this.#answers.size > 0;
  }

  get hasImports() {
    return this.#imports.size > 0;
  }

  /** Whether the other end may send something that matters. */
  get expects() {
    return this.#main !== null || this.#questions.size > 0 || this.#exports.size > 0 || this.#kept > 0;
  }

  /** Whether the other end still holds something of this one. The callee of a session stays open meanwhile. */
  get isHeld() {
    return this.#failure === null && (this.#exports.size > 0 || this.#kept > 0 || this.#running > 0 || this.channel.owesAnswers);
  }

  /** A promise that resolves when nothing is held any more. */
  untilFree() {
    return new Promise((resolve) => {
      this.#onFree = resolve;
      this.checkHeld();
    });
  }

  checkHeld() {
    if (!this.isHeld) this.#onFree?.();
  }

  // --- values ---

  /** Exports a capability: what describes it in a value. */
  capOut(cap) {
    if (cap.session === this) {
      if (this.#pinned !== null) {
        cap.retain();
        this.#pinned.push(cap);
      }
      return { home: cap.number };
    }
    let number = this.#numbers.get(cap);
    if (number === undefined) {
      if (this.#exports.size >= MOST_CAPS) throw new RangeError(`One RPC call holds more than ${MOST_CAPS} stubs: dispose some.`);
      number = ++this.#lastExport;
      if (this.#exports === NONE) [this.#exports, this.#numbers] = [new Map(), new Map()];
      this.#numbers.set(cap, number);
      this.#exports.set(number, { cap, count: 0 });
      cap.retain();
    }
    this.#exports.get(number).count++;
    this.#expect();
    return { cap: number };
  }

  /** A value with this capability was not sent. */
  undo({ cap: number }) {
    if (number !== undefined) this.#releaseExport(number, 1);
  }

  /** The stub for a capability in a value from the other end. */
  capIn({ cap: number, home }) {
    if (home !== undefined) {
      const own = this.#exports.get(home);
      if (own === undefined) throw new TypeError("The other worker sent a stub that does not exist.");
      return makeStub(own.cap);
    }
    if (!Number.isSafeInteger(number) || this.#imports.size >= MOST_CAPS) throw new TypeError("The other worker sent too many stubs.");
    if (this.#imports === NONE) this.#imports = new Map();
    let cap = this.#imports.get(number);
    if (cap === undefined) this.#imports.set(number, (cap = new RemoteCap(this, number)));
    cap.received++;
    this.#register();
    return makeStub(cap);
  }

  #register() {
    if (this.#failure === null) this.channel.add(this);
  }

  #expect() {
    this.#register();
    this.channel.listen();
  }

  // --- questions ---

  /** The question that a method call is; `answered` and `failed` end it. */
  begin() {
    this.#main = new Question(this, MAIN, 1);
    return this.#main;
  }

  ask(target, path, args, level) {
    if (this.#failure !== null) throw this.#failure.error;
    const bytes = args === null ? NOTHING : writeValue(args, this, movesParameters()).bytes;
    const question = new Question(this, ++this.#lastQuestion, level);
    if (this.#questions === NONE) this.#questions = new Map();
    this.#questions.set(question.id, question);
    this.channel.post(this, args === null ? "g" : "c", question.id, target, path, bytes);
    this.#expect();
    return question;
  }

  forget(question) {
    this.#questions.delete(question.id);
  }

  /** The answer to a question has come. */
  answered(id, bytes, isKept) {
    const question = this.#take(id);
    if (question === undefined) return;
    try {
      question.resolve(readResult(bytes, this, isKept ? () => this.#releaseAnswer(id) : null), isKept);
    } catch (error) {
      if (isKept) this.#releaseAnswer(id);
      question.reject(error);
    }
    this.#tidy();
  }

  failed(id, error) {
    const question = this.#take(id);
    if (question === undefined) return;
    question.reject(error);
    this.#tidy();
  }

  /** The question of a number that came from the other end; it is answered now. */
  #take(id) {
    if (id === MAIN) {
      const main = this.#main ?? undefined;
      this.#main = null;
      return main;
    }
    const question = this.#questions.get(id);
    this.#questions.delete(id);
    return question;
  }

  #releaseAnswer(id) {
    if (this.#failure === null) this.channel.post(this, "x", 1, -1 - id, [], NOTHING);
  }

  releaseImport(cap) {
    this.#imports.delete(cap.number);
    if (this.#failure === null) this.channel.post(this, "x", cap.received, cap.number, [], NOTHING);
    this.#tidy();
  }

  // --- from the other end ---

  receive(kind, id, target, path, bytes) {
    try {
      this.#receive(kind, id, target, path, bytes);
    } catch {
      this.end(brokenRules());
    }
  }

  #receive(kind, id, target, path, bytes) {
    if (kind === "c" || kind === "g") this.#receiveCall(id, target, path, kind === "c" ? bytes : null);
    else if (id === MAIN && (kind === "r" || kind === "t")) this.end(brokenRules()); // that answer does not come this way
    else if (kind === "r") this.answered(id, bytes, target === 1);
    else if (kind === "t") this.failed(id, makeThrown(JSON.parse(decodeText(bytes))));
    else if (kind === "x") this.#receiveRelease(target, id);
    else if (kind === "e") this.#receiveEnd(makeThrown(JSON.parse(decodeText(bytes))));
  }

  /** The answer to the method call itself travels by another way, and may be behind. */
  #receiveEnd(error) {
    if (this.#main !== null) this.#endAfterMain = error;
    else this.end(error);
  }

  #receiveRelease(target, count) {
    if (target >= 0) this.#releaseExport(target, count);
    else this.#forgetAnswer(-1 - target);
  }

  /** Releases more often than it was sent have no effect. */
  #releaseExport(number, count) {
    const entry = this.#exports.get(number);
    if (entry === undefined || count < 1) return;
    entry.count -= count;
    if (entry.count > 0) return;
    this.#exports.delete(number);
    this.#numbers.delete(entry.cap);
    entry.cap.release();
    this.#tidy();
  }

  #forgetAnswer(id) {
    const answer = this.#answers.get(id);
    if (answer === undefined || answer instanceof Promise) return;
    this.#answers.delete(id);
    this.#kept--;
    answer.cap.release();
    for (const cap of answer.pinned) cap.release();
    this.#tidy();
  }

  /** A session without stubs and questions receives nothing any more. */
  #tidy() {
    if (this.#endAfterMain !== null && this.#main === null) this.end(this.#endAfterMain);
    this.checkHeld();
    if (this.number !== 0 && !this.expects && this.#imports.size === 0) this.channel.remove(this);
  }

  #receiveCall(id, target, path, bytes) {
    if (id === MAIN || this.#answers.has(id)) {
      this.end(brokenRules());
      return;
    }
    const exported = target >= 0 ? this.#exports.get(target) : this.#answers.get(-1 - target);
    if (exported === undefined && target < 0) return; // the other end knows the answer by now
    let read = null;
    let running;
    try {
      if (exported === undefined) throw new TypeError("The RPC stub does not exist any more.");
      if (this.#running >= MOST_RUNNING || this.#kept >= MOST_CAPS) {
        throw new RangeError("Too many RPC calls run at the same time, or too many of their results are kept: dispose some.");
      }
      read = bytes === null ? null : readValue(bytes, this);
      running = this.#run(exported, path, read === null ? null : read.value);
    } catch (error) {
      running = Promise.reject(error);
    }
    this.answer(id, read, running).then(
      (written) => written !== null && this.channel.post(this, "r", id, written.isKept ? 1 : 0, [], written.bytes),
      (error) => {
        const described = { ...describeThrown(error), stack: undefined };
        this.channel.post(this, "t", id, 0, [], encodeText(JSON.stringify(described)));
      },
    );
  }

  async #run(exported, path, args) {
    this.#running++;
    try {
      // Calls of one stub start in the order in which they were made: nothing is awaited before.
      const { cap } = exported instanceof Promise ? await exported : exported;
      if (cap === undefined) throw new TypeError("The RPC stub does not exist any more."); // the other end knows the answer by now
      cap.retain();
      try {
        return await cap.run(path, args);
      } finally {
        cap.release();
      }
    } finally {
      this.#running--;
    }
  }

  /**
   * Answers question `id` with the value of the promise `running`. `read` are the arguments, whose stubs are disposed then.
   * Resolves to { bytes, isKept, sent }, or to null if the other end is gone.
   */
  async answer(id, read, running) {
    const answered = running.then((value) => this.#write(value)).finally(() => read?.finish());
    const caps = answered.then(({ cap }) => ({ cap }));
    caps.catch(() => {});
    if (this.#answers === NONE) this.#answers = new Map();
    this.#answers.set(id, caps);
    try {
      const written = await answered;
      if (this.#failure !== null) return null;
      if (written.isKept) this.#keep(id, written);
      else this.#answers.delete(id);
      if (id !== MAIN && written.sent.length > 0) this.#hold(Promise.allSettled(written.sent));
      return written;
    } catch (error) {
      this.#answers.delete(id);
      throw error;
    } finally {
      this.checkHeld();
    }
  }

  #keep(id, { cap, pinned }) {
    if (this.#answers === NONE) this.#answers = new Map();
    this.#answers.set(id, { cap, pinned });
    this.#kept++;
    this.#expect();
  }

  /** The answer of a method call without stubs in its arguments: nobody can have asked about it yet. */
  answerMain(value) {
    const written = this.#write(value);
    if (written.isKept) this.#keep(MAIN, written);
    return written;
  }

  /** Stays open until the streams in an answer are sent. */
  #hold(sent) {
    this.#running++;
    sent.then(() => {
      this.#running--;
      this.checkHeld();
    });
  }

  #write(value) {
    const root = handleOf(value)?.cap;
    root?.retain(); // sending a stub disposes it
    // The other end must not get a release of what it is sent back before the answer. Answers to method calls come by another way.
    const pinned = (this.#pinned = []);
    try {
      const written = writeValue(value, this, true);
      const isDisposable = typeof value === "object" && value !== null && typeof value[Symbol.dispose] === "function";
      const isKept = written.caps > 0 || isDisposable;
      if (!isKept) return Object.assign(written, { isKept });
      const cap = root ?? written.root ?? new LocalCap(written.copy ?? value, { disposable: isDisposable ? value : null });
      cap.retain();
      return Object.assign(written, { isKept, cap, pinned });
    } catch (error) {
      for (const cap of pinned) cap.release();
      throw error;
    } finally {
      this.#pinned = null;
      root?.release();
    }
  }

  /** The session is over: the call of this end or of the other is. */
  end(error) {
    if (this.#failure !== null) return;
    this.#failure = { error };
    this.channel.remove(this);
    const questions = this.#questions;
    this.#questions = NONE;
    this.#take(MAIN)?.reject(error);
    for (const question of questions.values()) question.reject(error);
    for (const { cap } of this.#exports.values()) cap.release();
    this.#exports = this.#numbers = NONE;
    for (const answer of this.#answers.values()) if (!(answer instanceof Promise)) answer.cap.release();
    this.#answers = NONE;
    this.#kept = 0;
    this.checkHeld();
  }
}
