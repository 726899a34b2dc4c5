// Node reads the WebAssembly of sql.js from its package.
export const instantiateWasm = undefined;
