// https://nodejs.org/api/perf_hooks.html: the part that is the web's.
import { Performance, performance } from "../performance.js";

export { Performance, performance };
