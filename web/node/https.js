// https://nodejs.org/api/https.html
import { Agent, globalAgent, makeRequest } from "./http.js";
import { unavailable } from "./unavailable.js";

export function request(...args) {
  return makeRequest("https:", args);
}

export function get(...args) {
  return request(...args).end();
}

export const { createServer, Server } = unavailable("https", ["createServer", "Server"]);
export { Agent, globalAgent };
