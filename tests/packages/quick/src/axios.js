// `axios`: with its adapter for fetch()
import axios from "axios";

export default async ({ http }) => {
  const api = axios.create({ baseURL: http, headers: { "X-App": "shop" }, timeout: 5000 });
  api.interceptors.request.use((config) => (config.headers.set("X-Seen", "1"), config));
  const got = await api.get("/echo", { params: { q: "a b", list: [1, 2] } });
  const sent = await api.post("/echo", { name: "日本" });
  const form = await api.post("/echo", new URLSearchParams({ a: "1" }));
  const error = await api.get("/status/404").catch((error) => [error.name, error.code, error.response.status, error.response.data]);
  const moved = await api.get("/redirect");
  const bytes = await api.get("/bytes", { responseType: "arraybuffer" });
  const late = await api.get("/never", { timeout: 100 }).catch((error) => error.message);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  const aborted = await api.get("/never", { signal: controller.signal }).catch((error) => [error.code, axios.isCancel(error)]);
  return [got.data.url, got.data.headers["x-app"], got.data.headers["x-seen"], sent.data.body, sent.data.headers["content-type"], form.data.body, error, moved.data.url, bytes.data.byteLength, late, aborted];
};
