import { betterAuth } from "better-auth";
import { memoryAdapter } from "@better-auth/memory-adapter";

export default async () => {
  const tables = { user: [], session: [], account: [], verification: [] };
  const auth = betterAuth({ baseURL: "http://shop.example", secret: "a secret of the tests with enough bytes in it", database: memoryAdapter(tables), emailAndPassword: { enabled: true }, telemetry: { enabled: false }, rateLimit: { enabled: false } });
  const post = (path, body) => auth.handler(new Request(`http://shop.example/api/auth${path}`, { method: "POST", headers: { "content-type": "application/json", origin: "http://shop.example" }, body: JSON.stringify(body) }));
  const signedUp = await post("/sign-up/email", { name: "Ann", email: "ann@example.com", password: "a long password" });
  const wrong = await post("/sign-in/email", { email: "ann@example.com", password: "another password" });
  const signedIn = await post("/sign-in/email", { email: "ann@example.com", password: "a long password" });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const session = await auth.api.getSession({ headers: new Headers({ cookie }) });
  return [signedUp.status, wrong.status, signedIn.status, cookie.split("=")[0], session?.user.email, tables.session.length];
};
