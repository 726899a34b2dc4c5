// https://nodejs.org/api/perf_hooks.html: only the part that the web has too.
import { Performance, performance } from "../performance.js";

export { Performance, performance };
