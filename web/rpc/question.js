// What one end of a session holds of the other: its capabilities, and the answers to questions.
import { currentScope, pass } from "../internal/scopes.js";
import { promiseDisposed, tooDeep } from "./errors.js";
import { ValueAnswer } from "./local.js";
import { useValue } from "./members.js";
import { MOST_LEVELS } from "./stubs.js";

export const MAIN = 0; // the question that a method call is

/** A capability of the other end. */
export class RemoteCap {
  #references = 0;

  constructor(session, number) {
    this.session = session;
    this.number = number;
    this.received = 0; // how often the other end has sent it
    this.owner = session.channel.owner;
  }

  retain() {
    this.#references++;
  }

  release() {
    if (--this.#references === 0) this.session.releaseImport(this);
  }

  run(path, args) {
    return this.ask(path, args).promise;
  }

  ask(path, args) {
    return this.session.ask(this.number, path, args, 1);
  }
}

/** A question that this end has asked, and later its answer. */
export class Question {
  isTaken = false; // somebody waits for the value
  #isDisposed = false;
  #isOpen = true;
  #isKept = false;
  #following = []; // questions about the answer, asked before it came: { question, path, args }
  #settle;
  #value;

  constructor(session, id, level) {
    this.session = session;
    this.id = id;
    this.level = level;
    this.owner = session.channel.owner;
    this.scope = currentScope();
    this.promise = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.promise.catch(() => {}); // whoever awaits it gets the error
  }

  /** Asks about the answer. */
  ask(path, args) {
    if (this.#isDisposed) throw promiseDisposed();
    if (!this.#isOpen && !this.#isKept) return new ValueAnswer(this.promise).ask(path, args);
    if (this.level >= MOST_LEVELS) throw tooDeep(MOST_LEVELS);
    const question = this.session.ask(-1 - this.id, path, args, this.level + 1);
    if (this.#isOpen) this.#following.push({ question, path, args });
    return question;
  }

  resolve(value, isKept) {
    this.#isOpen = false;
    this.#isKept = isKept;
    this.#value = value;
    pass(this.scope, () => this.#settle.resolve(value));
    if (!isKept) this.#answerHere((path, args) => useValue(value, path, args));
    else if (this.#isDisposed && !this.isTaken) value?.[Symbol.dispose]?.();
  }

  reject(error) {
    this.#isOpen = false;
    pass(this.scope, () => this.#settle.reject(error));
    this.#answerHere(() => {
      throw error;
    });
  }

  /** The other end has forgotten the answer: what was asked about it is answered here. */
  #answerHere(use) {
    for (const { question, path, args } of this.#following) {
      this.session.forget(question);
      try {
        question.resolve(use(path, args), false);
      } catch (error) {
        question.reject(error);
      }
    }
    this.#following.length = 0;
  }

  /** Calls under way go on. The value is disposed, unless somebody waits for it. */
  dispose() {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#isKept && !this.isTaken) this.#value?.[Symbol.dispose]?.();
  }
}
