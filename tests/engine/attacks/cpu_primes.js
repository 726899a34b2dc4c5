// A safe prime of 4,096 bits, whose search takes minutes.
// expect: cpu or exception
import crypto from "node:crypto";
export default {
  fetch() {
    return new Response(crypto.createDiffieHellman(4096).getPrime("hex"));
  },
};
