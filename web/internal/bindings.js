// Maps each kind of binding to the class of its object in `env`. The JavaScript half of each binding registers its class.
// The build imports all of them (tools/every_binding.mjs), so this file has no list.
const classes = { __proto__: null };

/** `Class` is constructed with the binding's name in `env`, and its facts if Python gives it some. */
export function defineBinding(kind, Class) {
  classes[kind] = Class;
}

export function makeBinding(kind, name, facts = undefined) {
  const Class = classes[kind];
  if (Class === undefined) throw new TypeError(`There is no kind of binding called "${kind}".`);
  return new Class(name, facts);
}
