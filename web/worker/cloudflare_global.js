// The global `Cloudflare`. https://developers.cloudflare.com/workers/runtime-apis/web-standards/
import { defineInterface } from "../internal/platform.js";
import { illegalConstructor } from "../internal/webidl.js";
import { allFlags } from "./compatibility.js";
import * as fixed from "./fixed_flags.gen.js";

const INTERNAL = Symbol("made by the platform");

class Cloudflare {
  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
    const value = allFlags(fixed);
    Object.defineProperty(this, "compatibilityFlags", { value, enumerable: true });
  }
}

defineInterface(Cloudflare);

export const cloudflare = new Cloudflare(INTERNAL);
