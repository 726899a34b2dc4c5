// https://nodejs.org/api/https.html
import { Agent as HttpAgent, makeRequest } from "./http.js";
import { unavailable } from "./unavailable.js";

export class Agent extends HttpAgent {
  protocol = "https:";
  defaultPort = 443;
}

export const globalAgent = new Agent();

export function request(...args) {
  return makeRequest(globalAgent, args);
}

export function get(...args) {
  return request(...args).end();
}

export const { createServer, Server } = unavailable("https", ["createServer", "Server"]);
