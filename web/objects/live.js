// The Durable Objects that live in this isolate, by slot, and how their events run.
//
// Python decides where an object lives and opens its storage under a slot before it sends the first call. The instance is made
// with the first event, and ends when Python closes the slot or the object breaks.
import { callOf } from "../internal/async_context.js";
import { setScopeOf } from "../internal/scopes.js";
import { lazy } from "../internal/lazy.js";
import { native } from "../internal/native.js";
import { awaitsReply } from "../internal/ops.js";
import { decodeText, encodeText } from "../internal/text.js";
import { ErrorCode, Level } from "../internal/wire.gen.js";
import { startTimer, clearTimeout } from "../timers.js";
import { runningCall } from "../worker/call.js";
import { currentEnv } from "../worker/env.js";
import { isWorkflowClass } from "../worker/handlers.js";
import { useEntrypoint } from "../rpc/members.js";
import { isObjectClass } from "./base.js";
import { storedName, storeName } from "./alarm_name.js";
import { InputGate } from "./gate.js";
import { makeId } from "./id.js";
import { ObjectLife } from "./life.js";
import { makeState } from "./state.js";
import { closeStorage, makeStorage, takeAlarm } from "./storage.js";

const BLOCK_MS = 30_000;
const TOO_LONG =
  "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was canceled and the Durable Object was reset.";
const NEVER =
  "A critical section within this Durable Object awaited a Promise that apparently will never complete. This could happen in particular " +
  "if a critical section awaits a task that was initiated outside of the critical section. Since a critical section blocks all other " +
  "tasks from completing, this leads to deadlock.";
const NO_RPC =
  "The receiving Durable Object does not support RPC, because its class was not declared with `extends DurableObject`. In order " +
  "to enable RPC, make sure your class extends the special class `DurableObject`, which can be imported from the module " +
  '"cloudflare:workers".';
const NO_ALARM = "Attempted to run a scheduled alarm without a handler, did you remember to export an alarm() function?";

const NO_RETRY = "\0no retry"; // tells Python that an alarm is not tried again (engine/objects/failures.py)

const hosts = new Map(); // slot -> ObjectHost
const hostOfCall = new Map(); // call id -> ObjectHost, while the call is open
let sweepAt = 64; // number of hosts at which those that Python has closed are dropped

class ObjectHost {
  #sockets = null; // made with the first use

  constructor(Class, { slot, id, name, sql, held, facet = 0, props = {} }) {
    this.slot = slot;
    if (held) this.#sockets = lazy("objects/sockets.js").socketsOf(slot);
    this.Class = Class;
    this.id = makeId(id, name);
    this.gate = new InputGate();
    this.depth = facet; // 0 for an object, 1 for a facet of it
    this.props = props;
    this.facets = null; // made with the first use
    this.instance = null;
    this.files = null; // of node:fs
    this.broken = null; // { error } once it is reset
    this.life = new ObjectLife(slot);
    this.sections = new Map(); // call id -> number of its open critical sections
    this.storage = makeStorage(slot, {
      sql,
      critical: (body) => this.critical(body),
      storeName: () => storeName(slot, this.id.name),
      hasAlarmHandler: () => {
        if (facet > 0) throw new Error("Facets currently cannot set alarms.");
        return this.instance === null || typeof Class.prototype.alarm === "function";
      },
    });
  }

  /** Its hibernatable WebSockets. */
  get sockets() {
    this.#sockets ??= lazy("objects/sockets.js").socketsOf(this.slot);
    return this.#sockets;
  }

  dropSockets() {
    if (this.#sockets !== null) lazy("objects/sockets.js").dropSockets(this.slot);
  }

  /** Runs an event of the object; the first one makes the instance. */
  enter(call, run) {
    if (this.broken !== null) throw this.broken.error;
    hostOfCall.set(call.id, this);
    call.owner = this;
    call.onOver = () => this.#left(call);
    call.mayEnd = () => this.life.mayEnd(call);
    if (this.instance === null) this.#construct();
    return this.gate.deliver(() => run(this.instance));
  }

  #left(call) {
    hostOfCall.delete(call.id);
    this.#sockets?.sendAttachments();
    // A section keeps its call open. If the call was ended all the same, nothing can end the section any more.
    if (this.sections.has(call.id)) this.reset(new Error(NEVER));
  }

  #construct() {
    try {
      this.instance = new this.Class(makeState(this), currentEnv());
    } catch (error) {
      this.reset(error);
      throw error;
    }
  }

  /** blockConcurrencyWhile(): the promise never settles if the section fails, because the object is reset. */
  block(callback) {
    return this.#section(callback, (resolve, { error }) => this.reset(error));
  }

  /** The same for a transaction: if it fails, its promise rejects and the object goes on. */
  critical(callback) {
    return this.#section(callback, (resolve, { error }, reject) => reject(error));
  }

  #section(callback, onFailure) {
    const call = runningCall(callOf(native.getAsyncContext()));
    const { promise, resolve, reject } = Promise.withResolvers();
    let timer = null;
    const ended = Promise.withResolvers();
    this.gate.section(
      () => {
        timer = this.#watch(this.gate.scope());
        return callback();
      },
      (failure, value) => {
        if (timer !== null) clearTimeout(timer);
        if (call !== undefined) this.#count(call.id, -1);
        ended.resolve();
        if (failure === null) resolve(value);
        else onFailure(resolve, failure, reject);
      },
    );
    if (call !== undefined) {
      this.#count(call.id, 1);
      call.waitUntil(ended.promise); // replies to its ops come only while its call is open
    }
    return promise;
  }

  #count(id, change) {
    const count = (this.sections.get(id) ?? 0) + change;
    if (count > 0) this.sections.set(id, count);
    else this.sections.delete(id);
  }

  /** A section that waits for nothing of its own waits for what it keeps out. */
  #watch(section) {
    try {
      return startTimer(() => this.reset(new Error(awaitsReply(section) ? TOO_LONG : NEVER)), BLOCK_MS);
    } catch {
      return null; // this worker may not set so long a timer: the wall time of its calls is the limit
    }
  }

  /** The object breaks: Python fails its calls with this error, and the next event makes a new one. */
  reset(error, code = ErrorCode.EXCEPTION, mark = "") {
    if (this.broken !== null) return;
    this.broken = { error };
    hosts.delete(this.slot);
    this.dropSockets();
    this.gate.break();
    closeStorage(this.storage);
    const isError = error instanceof Error;
    native.resetStorage(this.slot, code, `${isError ? error.message : error}${mark}`, isError ? `${error.name}` : "");
  }

  abort(error, retryAlarm) {
    this.reset(error, ErrorCode.OBJECT_RESET, retryAlarm ? "" : NO_RETRY);
    if (native.stopCode()) for (;;); // the loop is where the code ends
    throw error;
  }
}

function newHost(exports, address) {
  const Class = exports[address.entrypoint];
  if (typeof Class !== "function") throw new TypeError(`The worker exports no class "${address.entrypoint}".`);
  return new ObjectHost(isWorkflowClass(Class) ? lazy("workflow/instance.js").instanceClassOf(Class) : Class, address);
}

function hostOf(exports, address) {
  const known = hosts.get(address.slot);
  if (known !== undefined) return known;
  if (hosts.size >= sweepAt) dropClosed();
  const host = newHost(exports, address);
  hosts.set(address.slot, host);
  setScopeOf(currentScope, currentSlot);
  return host;
}

function isOpen(slot) {
  try {
    native.getAlarm(slot);
    return true;
  } catch {
    return false;
  }
}

function dropClosed() {
  for (const [slot, host] of hosts) {
    if (isOpen(slot)) continue;
    host.gate.break();
    hosts.delete(slot);
    host.dropSockets();
  }
  sweepAt = Math.max(64, 2 * hosts.size);
}

/** The scope of the input gate that the running code belongs to; undefined outside of objects. */
function currentScope() {
  return hostOfCall.get(callOf(native.getAsyncContext()))?.gate.scope();
}

function currentSlot() {
  return hostOfCall.get(callOf(native.getAsyncContext()))?.slot ?? 0;
}

/** A fetch: (request, call) => Response or a promise of it. */
export function fetchObject(exports, address) {
  return (request, call) =>
    hostOf(exports, address).enter(call, (instance) => {
      if (typeof instance.fetch !== "function") throw new TypeError("Handler does not export a fetch() function.");
      return instance.fetch(request);
    });
}

/** How a method of an object is called, or a property read if `args` is null: (path, args) => the value. */
export function reachObject(exports, address, call) {
  return async (path, args) => {
    const host = hostOf(exports, address);
    return host.enter(call, (instance) => {
      if (!isObjectClass(host.Class)) throw new TypeError(NO_RPC);
      return useEntrypoint(instance, path, args);
    });
  };
}

/** alarm(). The reply says whether the handler has set another alarm meanwhile. */
export async function runAlarm(exports, address, call) {
  if (address.name === undefined && !hosts.has(address.slot)) address.name = storedName(address.slot);
  const host = hostOf(exports, address);
  const { scheduledTime, retryCount } = address;
  return host.enter(call, async (instance) => {
    if (typeof instance.alarm !== "function") {
      native.log(Level.WARN, NO_ALARM);
      return { handled: false };
    }
    takeAlarm(host.storage);
    await instance.alarm({ scheduledTime, retryCount, isRetry: retryCount > 0 });
    return { handled: true };
  });
}

/** A question of an operator. It sees what the object stores, and makes no instance. */
export async function runConsole(exports, address, body) {
  const question = JSON.parse(decodeText(body));
  const { answerConsole } = lazy("objects/console.js");
  const answer = (host) => encodeText(answerConsole(host, question));
  const known = hosts.get(address.slot);
  if (known !== undefined) return known.gate.deliver(() => answer(known));
  const host = newHost(exports, { ...address, name: storedName(address.slot) }); // not kept: the next event may know its name
  return answer(host);
}

/** The call that timers of an object run in. */
export function runLife(address, call) {
  const host = hosts.get(address.slot);
  if (host === undefined) return {};
  hostOfCall.set(call.id, host);
  call.owner = host;
  call.onOver = () => hostOfCall.delete(call.id);
  host.life.begin(call);
  return new Promise(() => {}); // `life` ends the call
}

/** An event of a hibernatable WebSocket. The next one of the same socket follows when its handler is done. */
export async function runSocket(exports, address, body, call) {
  call.isPrompt = true;
  const host = hostOf(exports, address);
  await host.enter(call, (instance) => host.sockets.dispatch(instance, address, body));
}
