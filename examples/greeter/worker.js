// A worker for other workers: its methods are called over a service binding (see ../front-desk).
import { WorkerEntrypoint } from "cloudflare:workers";

export default class Greeter extends WorkerEntrypoint {
  greet(name) {
    return `${this.env.GREETING}, ${name}!`;
  }

  fetch(request) {
    return new Response(`${this.greet(new URL(request.url).pathname.slice(1) || "world")}\n`);
  }
}
