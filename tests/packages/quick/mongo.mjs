// As much of a MongoDB server as the driver's first steps need: OP_MSG with hello, insert, find, getMore and delete. No package index has the real one.
import net from "node:net";
import { deserialize, serialize } from "bson";

const OP_MSG = 2013;
const OP_QUERY = 2004; // the first message of a connection may be this
const HELLO = { isWritablePrimary: true, ismaster: true, maxBsonObjectSize: 16 << 20, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000, minWireVersion: 0, maxWireVersion: 25, readOnly: false };

let items = [];
const cursors = new Map();

function next(cursor, batch, space) {
  const rows = cursors.get(cursor) ?? [];
  const sent = rows.splice(0, batch ?? rows.length);
  if (!rows.length) cursors.delete(cursor);
  return { [space]: sent, id: BigInt(rows.length ? cursor : 0), ns: "shop.items" };
}

const commands = {
  hello: () => HELLO,
  ismaster: () => HELLO,
  insert: ({ documents }) => (items.push(...documents), { n: documents.length }),
  delete: () => ({ n: items.splice(0).length }),
  find: ({ filter, batchSize, limit }) => {
    const cursor = cursors.size + 1;
    cursors.set(cursor, items.filter((item) => Object.entries(filter).every(([key, value]) => item[key] === value)).slice(0, limit || undefined));
    return { cursor: next(cursor, limit ? undefined : batchSize, "firstBatch") };
  },
  getMore: ({ getMore, batchSize }) => ({ cursor: next(Number(getMore), batchSize, "nextBatch") }),
  endSessions: () => ({}),
  killCursors: () => ({}),
  ping: () => ({}),
};

function read(body) {
  const command = {};
  for (let at = 4; at < body.length; ) {
    const kind = body[at++];
    const size = body.readInt32LE(at);
    const end = at + size;
    if (kind === 0) Object.assign(command, deserialize(body.subarray(at, end)));
    else {
      let from = body.indexOf(0, at + 4) + 1;
      const list = (command[body.toString("utf8", at + 4, from - 1)] = []);
      for (; from < end; from += body.readInt32LE(from)) list.push(deserialize(body.subarray(from, from + body.readInt32LE(from))));
    }
    at = end;
  }
  return command;
}

function answer(socket, id, kind, body) {
  const old = kind === OP_QUERY;
  const command = old ? deserialize(body.subarray(body.indexOf(0, 4) + 9)) : read(body);
  const name = Object.keys(command)[0];
  const result = Object.hasOwn(commands, name) ? { ...commands[name](command), ok: 1 } : { ok: 0, errmsg: `no such command: '${name}'`, code: 59, codeName: "CommandNotFound" };
  const front = old ? Buffer.alloc(20) : Buffer.alloc(5);
  if (old) front.writeInt32LE(1, 16);
  const payload = Buffer.concat([front, serialize(result)]);
  const head = Buffer.alloc(16);
  [payload.length + 16, 0, id, old ? 1 : OP_MSG].forEach((value, index) => head.writeInt32LE(value, index * 4));
  socket.write(Buffer.concat([head, payload]));
}

export const serveMongo = () =>
  net.createServer((socket) => {
    let waiting = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (part) => {
      waiting = Buffer.concat([waiting, part]);
      while (waiting.length >= 16 && waiting.length >= waiting.readInt32LE(0)) {
        const length = waiting.readInt32LE(0);
        answer(socket, waiting.readInt32LE(4), waiting.readInt32LE(12), waiting.subarray(16, length));
        waiting = waiting.subarray(length);
      }
    });
  });
