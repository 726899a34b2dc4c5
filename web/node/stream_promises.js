// https://nodejs.org/api/stream.html#streams-promises-api
import { promises } from "./stream.js";

export const { finished, pipeline } = promises;
