// Compatibility flags of RPC.
import { isOn } from "../worker/compatibility.js";

/** A stub in the arguments of a call moves to the callee: it cannot be used here any more. */
export function movesParameters() {
  return !isOn("rpc_params_dup_stubs");
}
