// https://nodejs.org/api/timers.html. A timer is a number, as on the web.
import * as promises from "./timers_promises.js";
import { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from "../timers.js";

export { clearImmediate, clearInterval, clearTimeout, promises, setImmediate, setInterval, setTimeout };
