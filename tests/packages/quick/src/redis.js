// `redis`: against Redis
import { createClient } from "redis";

export default async ({ redis }) => {
  const client = createClient({ socket: { host: "127.0.0.1", port: redis.port }, password: redis.password });
  client.on("error", () => {});
  await client.connect();
  await client.del(["pk:name", "pk:list", "pk:hash"]);
  await client.set("pk:name", "日本", { EX: 60 });
  await client.rPush("pk:list", ["a", "b"]);
  await client.hSet("pk:hash", { a: 1, b: "two" });
  const many = await client.multi().incr("pk:n").del("pk:n").exec();
  const result = [await client.get("pk:name"), await client.lRange("pk:list", 0, -1), await client.hGetAll("pk:hash"), many];
  const subscriber = client.duplicate();
  subscriber.on("error", () => {});
  await subscriber.connect();
  let hear;
  const heard = new Promise((resolve) => (hear = resolve));
  await subscriber.subscribe("pk:news", (message) => hear(message));
  await client.publish("pk:news", "hello");
  result.push(await heard);
  await subscriber.close();
  const error = await client.sendCommand(["NOPE"]).catch((error) => error.message.slice(0, 11));
  await client.close();
  return [...result, error];
};
