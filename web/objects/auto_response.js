// https://developers.cloudflare.com/durable-objects/api/state/#setwebsocketautoresponse
import { defineInterface } from "../internal/platform.js";
import { requireArguments, toUSVString } from "../internal/webidl.js";

// Set by the class below.
export let isPair;

export class WebSocketRequestResponsePair {
  #request;
  #response;

  constructor(request, response) {
    requireArguments(arguments.length, 2, "WebSocketRequestResponsePair constructor");
    this.#request = toUSVString(request);
    this.#response = toUSVString(response);
  }

  get request() {
    return this.#request;
  }

  get response() {
    return this.#response;
  }

  static {
    isPair = (value) => typeof value === "object" && value !== null && #request in value;
  }
}

defineInterface(WebSocketRequestResponsePair);
