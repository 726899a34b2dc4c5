// https://nodejs.org/api/cluster.html: a worker is always the primary, and has no others.
import { EventEmitter } from "./events.js";
import { notImplemented } from "./http_common.js";
import { process } from "./process.js";

export const SCHED_NONE = 1;
export const SCHED_RR = 2;
export const isMaster = true;
export const isPrimary = true;
export const isWorker = false;
export const schedulingPolicy = SCHED_RR;
export const settings = {};
export const workers = {};

export class Worker extends EventEmitter {
  _connected = false;
  id = 0;
  exitedAfterDisconnect = false;

  get process() {
    return process;
  }

  isConnected() {
    return this._connected;
  }

  isDead() {
    return true;
  }

  send() {
    return false;
  }

  kill() {
    this._connected = false;
  }

  destroy() {
    this._connected = false;
  }

  disconnect() {
    this._connected = false;
    return this;
  }
}

export function setupPrimary() {
  throw notImplemented("cluster.setupPrimary");
}

export function setupMaster() {
  throw notImplemented("cluster.setupMaster");
}

export function disconnect() {
  throw notImplemented("cluster.disconnect");
}

export function fork() {
  throw notImplemented("cluster.fork");
}

export class Cluster extends EventEmitter {
  isMaster = isMaster;
  isPrimary = isPrimary;
  isWorker = isWorker;
  SCHED_NONE = SCHED_NONE;
  SCHED_RR = SCHED_RR;
  schedulingPolicy = schedulingPolicy;
  settings = settings;
  workers = workers;
  Worker = Worker;
  setupPrimary = setupPrimary;
  setupMaster = setupMaster;
  disconnect = disconnect;
  fork = fork;
}

export default new Cluster();
