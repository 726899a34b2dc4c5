// A worker for other workers: its methods are called over a service binding (see ../front-desk).
import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";

/** A conversation with one guest. It stays here: the other worker gets a stub and calls it. */
class Conversation extends RpcTarget {
  #greeting;
  #name;
  #said = 0;

  constructor(greeting, name) {
    super();
    this.#greeting = greeting;
    this.#name = name;
  }

  hello() {
    this.#said++;
    return `${this.#greeting}, ${this.#name}!`;
  }

  get said() {
    return this.#said;
  }

  [Symbol.dispose]() {
    console.log(`${this.#name} has left after ${this.#said} greetings`);
  }
}

export default class Greeter extends WorkerEntrypoint {
  greet(name) {
    return `${this.env.GREETING}, ${name}!`;
  }

  converse(name) {
    return new Conversation(this.env.GREETING, name);
  }

  /** Calls `tell`, a function of the other worker, for each name. */
  async greetAll(names, tell) {
    for (const name of names) await tell(this.greet(name));
  }

  fetch(request) {
    return new Response(`${this.greet(new URL(request.url).pathname.slice(1) || "world")}\n`);
  }
}
