// Powers of numbers with 8,192 bits, one after the other.
// expect: cpu
// engine: may be replaced
import crypto from "node:crypto";
export default {
  fetch() {
    for (;;) crypto.createDiffieHellmanGroup("modp18").generateKeys();
  },
};
