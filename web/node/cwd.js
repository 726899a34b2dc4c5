// The working directory: /bundle, until process.chdir() makes it one of the running call. Apart from node:fs, so that node:path does not load it.
let current = () => "/bundle";

export function cwd() {
  return current();
}

/** From now on `source()` tells the working directory. */
export function setCwdSource(source) {
  current = source;
}
