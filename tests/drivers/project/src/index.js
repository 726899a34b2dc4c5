// Database drivers from npm, unchanged. The path names the driver and what it does; `databases` is where the servers are.
import { Buffer } from "node:buffer";
import net from "node:net";
import Redis from "ioredis";
import mysql from "mysql2/promise";
import pg from "pg";
import postgres from "postgres";

const USER = "ada";

async function withPg(options, use) {
  const client = new pg.Client({ user: USER, host: "127.0.0.1", database: "postgres", ...options });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function queryPg(client) {
  await client.query("CREATE TEMP TABLE item (id serial, name text, price numeric, at timestamptz DEFAULT now(), data jsonb)");
  await client.query("BEGIN");
  for (const name of ["apple", "Birne", "日本"]) {
    await client.query("INSERT INTO item (name, price, data) VALUES ($1, $2, $3)", [name, 1.5, { name }]);
  }
  await client.query("COMMIT");
  const { rows } = await client.query({ name: "get", text: "SELECT name, price, data FROM item WHERE id > $1 ORDER BY id", values: [1] });
  const big = await client.query("SELECT repeat('x', 3000000) AS text");
  const error = await client.query("SELECT nothing").catch((error) => error.code);
  return [rows, big.rows[0].text.length, error];
}

let pool; // lives across requests, as in many projects

const routes = {
  "/pg": (env) => withPg(env.pg, queryPg),
  "/pg/tls": (env) =>
    withPg({ ...env.pg, ssl: true }, async (client) => (await client.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).rows),
  "/pg/net": (env) => withPg({ ...env.pg, stream: () => new net.Socket() }, queryPg),
  "/pg/wrong": (env) => withPg({ ...env.pg, password: "wrong" }, () => "connected"),
  async "/pg/pool"(env) {
    const own = new pg.Pool({ user: USER, host: "127.0.0.1", database: "postgres", max: 3, ...env.pg });
    const all = await Promise.all(Array.from({ length: 10 }, async (_, i) => (await own.query("SELECT $1::int AS i", [i])).rows[0].i));
    await own.end();
    return all;
  },
  async "/pg/global"(env) {
    if (pool === undefined) {
      pool = new pg.Pool({ user: USER, host: "127.0.0.1", database: "postgres", max: 3, ...env.pg });
      pool.on("error", () => {}); // pg's documentation asks for it: idle clients may lose their connection
    }
    return (await pool.query("SELECT 1 AS one")).rows;
  },
  async "/postgres"(env) {
    const sql = postgres({ username: USER, host: "127.0.0.1", database: "postgres", max: 2, ...env.pg });
    const rows = await sql`SELECT ${7}::int AS n, ${"text"} AS t, ${sql.json({ a: [1] })}::jsonb AS j`;
    const many = await sql`SELECT g FROM generate_series(1, 5000) g`;
    const done = await sql.begin(async (own) => {
      await own`CREATE TEMP TABLE x (v int)`;
      await own`INSERT INTO x ${own([{ v: 1 }, { v: 2 }])}`;
      return own`SELECT sum(v)::int AS sum FROM x`;
    });
    const error = await sql`SELECT nothing`.catch((error) => error.code);
    await sql.end();
    return [rows, many.length, done, error];
  },
  async "/postgres/tls"(env) {
    const sql = postgres({ username: USER, host: "127.0.0.1", database: "postgres", ssl: "verify-full", ...env.pg });
    const rows = await sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`;
    await sql.end();
    return rows;
  },
  async "/mysql"(env) {
    const connection = await mysql.createConnection({ user: USER, host: "127.0.0.1", database: "shop", disableEval: true, ...env.mysql });
    await connection.query("CREATE TEMPORARY TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT, at DATETIME, data BLOB)");
    await connection.execute("INSERT INTO item (name, at, data) VALUES (?, ?, ?)", ["日本", "2026-01-02 03:04:05", Buffer.from([1, 2])]);
    const [rows] = await connection.execute("SELECT name, data FROM item WHERE id = ?", [1]);
    const [big] = await connection.query("SELECT REPEAT('x', 3000000) AS text");
    const error = await connection.query("SELECT nothing").catch((error) => error.code);
    await connection.end();
    return [rows, big[0].text.length, error];
  },
  async "/mysql/tls"(env) {
    const connection = await mysql.createConnection({ user: USER, host: "127.0.0.1", database: "shop", disableEval: true, ssl: {}, ...env.mysql });
    const [rows] = await connection.query("SHOW STATUS LIKE 'Ssl_version'");
    await connection.end();
    return rows[0].Value;
  },
  async "/mysql/pool"(env) {
    const own = mysql.createPool({ user: USER, host: "127.0.0.1", database: "shop", disableEval: true, connectionLimit: 3, ...env.mysql });
    const all = await Promise.all(Array.from({ length: 10 }, async (_, i) => (await own.query("SELECT ? AS i", [i]))[0][0].i));
    await own.end();
    return all;
  },
  async "/redis"(env) {
    const redis = new Redis({ host: "127.0.0.1", maxRetriesPerRequest: 0, ...env.redis });
    await redis.set("key", "日本");
    const value = await redis.get("key");
    const [[, first], [, second]] = await redis.multi().incr("count").incr("count").exec();
    const piped = await redis.pipeline(Array.from({ length: 100 }, (_, i) => ["set", `k${i}`, "x".repeat(10_000)])).exec();
    const sizes = await redis.mget(Array.from({ length: 100 }, (_, i) => `k${i}`));
    const subscriber = redis.duplicate();
    const heard = new Promise((resolve) => subscriber.on("message", (channel, message) => resolve([channel, message])));
    await subscriber.subscribe("news");
    await redis.publish("news", "hello");
    const news = await heard;
    const error = await redis.call("NOTHING").catch((error) => error.message.slice(0, 11));
    await subscriber.quit();
    const told = await redis.quit();
    return [value, second - first, piped.length, sizes.join("").length, news, error, told];
  },
  async "/redis/tls"(env) {
    const redis = new Redis({ host: "127.0.0.1", maxRetriesPerRequest: 0, ...env.redis, port: env.redis.tlsPort, tls: {} });
    const pong = await redis.ping();
    redis.disconnect();
    return pong;
  },
};

const hyperdrive = {
  async "/hyperdrive/facts"({ PG, MYSQL }) {
    return [PG, MYSQL].map(({ host, port, user, password, database, connectionString }) => [/^[0-9a-f]{32}\.hyperdrive\.local$/.test(host), port, user, password, database, connectionString.replace(host, "HOST")]);
  },
  async "/hyperdrive/pg"({ PG }) {
    const client = new pg.Client({ connectionString: PG.connectionString });
    await client.connect();
    const { rows } = await client.query("SELECT ssl, current_user AS name FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    const all = await queryPg(client);
    await client.end();
    return [rows, all];
  },
  async "/hyperdrive/postgres"({ PG }) {
    const sql = postgres(PG.connectionString, { max: 1 });
    const rows = await sql`SELECT ${7}::int AS n`;
    await sql.end();
    return rows;
  },
  async "/hyperdrive/mysql"({ MYSQL: { host, port, user, password, database } }) {
    const connection = await mysql.createConnection({ host, port, user, password, database, disableEval: true });
    const [rows] = await connection.execute("SELECT ? AS n", [7]);
    await connection.end();
    return rows;
  },
  async "/hyperdrive/socket"({ PG }) {
    const socket = PG.connect();
    await socket.opened;
    const writer = socket.writable.getWriter();
    await writer.write(new Uint8Array([0, 0, 0, 8, 4, 210, 22, 47])); // an SSLRequest: the connection has TLS already
    const { value } = await socket.readable.getReader().read();
    await socket.close();
    return String.fromCharCode(value[0]);
  },
  async "/hyperdrive/other"(env, request) {
    const client = new pg.Client({ host: new URL(request.url).searchParams.get("host"), port: 5432, user: "x", password: "x", database: "x" });
    return client.connect().then(() => "connected");
  },
};

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    try {
      if (pathname in hyperdrive) return Response.json(await hyperdrive[pathname](env, request));
      return Response.json(await routes[pathname](env.DATABASES));
    } catch (error) {
      return Response.json({ error: `${error.name}: ${error.message}`, code: error.code, cause: error.cause?.message }, { status: 500 });
    }
  },
};
