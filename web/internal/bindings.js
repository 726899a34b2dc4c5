// Which class env.NAME is an object of, by kind of binding. The JavaScript half of each binding says it of itself; the build
// brings in all of them (tools/every_binding.mjs), so that there is no list here.
const classes = { __proto__: null };

/** `Class` is made with the name that the binding has in env. */
export function defineBinding(kind, Class) {
  classes[kind] = Class;
}

export function makeBinding(kind, name) {
  const Class = classes[kind];
  if (Class === undefined) throw new TypeError(`There is no kind of binding called "${kind}".`);
  return new Class(name);
}
