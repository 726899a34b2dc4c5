// https://nodejs.org/api/tty.html: a worker has no terminal.
import { Socket } from "./net_socket.js";

export function isatty() {
  return false;
}

export function ReadStream(fd) {
  this.fd = fd;
  this.isRaw = false;
  this.isTTY = false;
}

Object.setPrototypeOf(ReadStream.prototype, Socket.prototype);
Object.setPrototypeOf(ReadStream, Socket);

ReadStream.prototype.setRawMode = function (mode) {
  this.isRaw = mode;
  return this;
};

export function WriteStream(fd) {
  this.fd = fd;
  this.columns = 0;
  this.rows = 0;
}

Object.setPrototypeOf(WriteStream.prototype, Socket.prototype);
Object.setPrototypeOf(WriteStream, Socket);

// The last argument may be a callback, which is called at once.
function move(...args) {
  const callback = args.findLast((each) => typeof each === "function");
  callback?.();
  return false;
}

Object.assign(WriteStream.prototype, {
  isTTY: true,
  getColorDepth: () => 8,
  hasColors: () => false,
  _refreshSize() {},
  cursorTo: move,
  moveCursor: move,
  clearLine: move,
  clearScreenDown: move,
  getWindowSize() {
    return [this.columns ?? 0, this.rows ?? 0];
  },
});
