// https://developers.cloudflare.com/hyperdrive/: where the worker's driver connects to. The other half is ops.py; connections to
// `host` go through the binding, also those of node:net.
import { defineBinding } from "#web/internal/bindings.js";
import { lazy } from "#web/internal/lazy.js";

export class Hyperdrive {
  #name;
  #facts;

  constructor(name, facts) {
    this.#name = name;
    this.#facts = facts;
  }

  #read(field) {
    if (this.#facts === undefined) throw new Error(`The Hyperdrive database of env.${this.#name} was deleted.`);
    return this.#facts[field];
  }

  get host() {
    return this.#read("host");
  }

  get port() {
    return this.#read("port");
  }

  get user() {
    return this.#read("user");
  }

  get password() {
    return this.#read("password");
  }

  get database() {
    return this.#read("database");
  }

  get connectionString() {
    const [user, password, database] = [this.user, this.password, this.database].map(encodeURIComponent);
    const plain = this.#read("scheme") === "postgresql" ? "?sslmode=disable" : ""; // Python has the TLS
    return `${this.#read("scheme")}://${user}:${password}@${this.host}:${this.port}/${database}${plain}`;
  }

  connect() {
    return lazy("sockets/tcp_socket.js").connect({ hostname: this.host, port: this.port });
  }
}

defineBinding("hyperdrive", Hyperdrive);
