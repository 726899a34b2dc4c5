// `mqtt`: its build for browsers, as with wrangler: over WebSockets, to a broker
import mqtt from "mqtt";

export default async ({ mqtt: url }) => {
  const client = await mqtt.connectAsync(url, { username: "ada", password: "secret", reconnectPeriod: 0 });
  const heard = new Promise((resolve) => client.on("message", (topic, payload, packet) => resolve([topic, payload.toString(), packet.qos])));
  await client.subscribeAsync("rooms/+/news", { qos: 1 });
  await client.publishAsync("rooms/1/news", "日本", { qos: 1 });
  const result = await heard;
  await client.endAsync();
  return result;
};
