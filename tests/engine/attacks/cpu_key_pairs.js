// Key pairs of the largest size, one after the other, beside the thread of the isolate and on it.
// expect: cpu or exception
// limits: cpu_ms=500
import crypto from "node:crypto";

export default {
  async fetch() {
    const later = (type, options) => new Promise((resolve) => crypto.generateKeyPair(type, options, resolve));
    for (;;) {
      await later("dsa", { modulusLength: 4096 });
      await later("dh", { primeLength: 4096 });
      await later("rsa", { modulusLength: 8192 });
      crypto.generateKeyPairSync("rsa-pss", { modulusLength: 8192, publicExponent: 3 });
    }
  },
};
