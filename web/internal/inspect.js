// Formats values as text in the style of Node's util.inspect, for console.log.
//
// A log line must never fail or take long. So getters of a worker's objects are not called, proxies are not entered, and
// depth, items and characters are bounded.
import { group, leaf, sortByText } from "./inspect_layout.js";
import { attributesOf, bufferContents, isToldBy, kindOf, painted, primitive, propertyKey, quote, stackOf, unbox } from "./inspect_values.js";
import { native } from "./native.js";
import { lazy } from "./lazy.js";
import { interfaceOf } from "./platform.js";

const DEPTH = 2; // levels of objects within the value
const MOST_ITEMS = 100;
const LINE_WIDTH = 80;
const COMPACT_LEVELS = 3; // levels that may share a line
const MOST_CHARACTERS = 128 * 1024;
const MOST_STRING = 10_000; // characters of one string
const MOST_PROPERTIES = 1000; // of one object

const CUSTOM = Symbol.for("nodejs.util.inspect.custom");

const errorToString = Error.prototype.toString;
const getSize = {
  Map: Object.getOwnPropertyDescriptor(Map.prototype, "size").get,
  Set: Object.getOwnPropertyDescriptor(Set.prototype, "size").get,
};
const mapForEach = Map.prototype.forEach;
const setForEach = Set.prototype.forEach;
const dateToISO = Date.prototype.toISOString;
const dateGetTime = Date.prototype.getTime;
const regExpToString = RegExp.prototype.toString;
const objectToString = Object.prototype.toString;

// The state of one inspection: the path to the current object, circular references, and how much has been written.
class Inspection {
  path = [];
  circular = new Map(); // object -> its number
  written = 0;
  latest = 0; // depth of the object that was entered last

  constructor({
    depth = DEPTH, items = MOST_ITEMS, characters = MOST_STRING, width = LINE_WIDTH, compact = COMPACT_LEVELS, sorted = false, separated = false,
    getters = false, custom = true, hidden = false, proxies = false, paint = undefined,
  }) {
    Object.assign(this, { depth, items, characters, width, compact, sorted, separated, getters, custom, hidden, proxies, paint });
  }
}

/**
 * `depth`: levels of nested objects to show, or Infinity. `items`: most items of a list. `characters`: most characters of a string.
 * `width`: of a line. `compact`: levels that may share a line. `sorted`: properties by name. `separated`: 1_000 instead of 1000.
 * `getters`: call getters ("get": only those without a setter, "set": only those with one). `custom`: call custom inspect functions.
 * `hidden`: properties that are not enumerable too. `proxies`: proxies with their handlers. `paint`: a function of a text and its style.
 */
export function inspect(value, options = {}) {
  return formatValue(new Inspection(options), value).text;
}

// Each formatter returns { text }.
function countedLeaf(run, text) {
  run.written += text.length;
  return leaf(text);
}

function special(run, text) {
  return leaf(painted(run, text, "special"));
}

function formatValue(run, value) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    return run.written > MOST_CHARACTERS ? leaf("…") : countedLeaf(run, primitive(value, run));
  }
  if (run.written > MOST_CHARACTERS) return leaf("…");
  if (run.path.includes(value)) {
    if (!run.circular.has(value)) run.circular.set(value, run.circular.size + 1);
    return special(run, `[Circular *${run.circular.get(value)}]`);
  }
  let result;
  try {
    result = formatObject(run, value);
  } catch {
    // An exotic object that throws when it is inspected.
    result = leaf("[object]");
  }
  if (run.circular.has(value)) result = { ...result, text: `${painted(run, `<ref *${run.circular.get(value)}>`, "special")} ${result.text}` };
  return result;
}

function constructorName(object) {
  for (let at = object; at !== null; at = Object.getPrototypeOf(at)) {
    const descriptor = Object.getOwnPropertyDescriptor(at, "constructor");
    const maker = descriptor?.value;
    if (typeof maker === "function" && typeof maker.name === "string" && maker.name !== "") return maker.name;
  }
  return null;
}

function prefixOf(object, kind, size = undefined) {
  const name = constructorName(object);
  const shown = name === null ? `[${kind}: null prototype]` : name;
  const sized = size === undefined ? shown : `${shown}(${size})`;
  const tag = tagOf(object);
  return tag !== "" && tag !== name ? `${sized} [${tag}]` : sized;
}

// The @@toStringTag of the object, unless it is shown among the properties.
function tagOf(object) {
  try {
    const tag = object[Symbol.toStringTag];
    if (typeof tag !== "string" || Object.getOwnPropertyDescriptor(object, Symbol.toStringTag)?.enumerable) return "";
    return tag;
  } catch {
    return "";
  }
}

// https://nodejs.org/api/util.html#custom-inspection-functions-on-objects
function formatCustom(run, object) {
  const method = object[CUSTOM];
  if (typeof method !== "function") return undefined;
  const { depth, items, characters, width, compact, sorted, hidden, proxies, paint } = run;
  const options = {
    depth: depth - run.path.length, maxArrayLength: items, maxStringLength: characters, breakLength: width, compact, sorted,
    showHidden: hidden, showProxy: proxies, colors: paint !== undefined, stylize: (text, style) => painted(run, `${text}`, style),
  };
  const result = method.call(object, options.depth, options, lazy("node/util_module.js").inspect);
  if (typeof result === "string") return countedLeaf(run, result);
  return result === object ? undefined : nested(run, object, () => formatValue(run, result)) ?? special(run, "[Object]");
}

function formatObject(run, object) {
  const kind = kindOf(object);
  if (run.custom && kind !== "Proxy" && CUSTOM in object) {
    const shown = formatCustom(run, object);
    if (shown !== undefined) return shown;
  }
  const known = kind === "Object" ? interfaceOf(object) : undefined;
  if (known !== undefined) return formatInterface(run, object, known);
  return (FORMATTERS[kind] ?? formatTypedArray)(run, object, kind);
}

function isPlain(object) {
  return typeof object === "object" && Object.getPrototypeOf(object) === Object.prototype && tagOf(object) === "";
}

// An empty object is shown at any depth.
function isEmpty(run, object) {
  return run.hidden ? Reflect.ownKeys(object).length === 0 : Object.keys(object).length === 0 && Object.getOwnPropertySymbols(object).length === 0;
}

// Runs `body` one level deeper; null if that level is not shown.
function nested(run, object, body) {
  if (run.path.length > run.depth) return null;
  run.latest = run.path.length;
  run.path.push(object);
  try {
    return body();
  } finally {
    run.path.pop();
  }
}

function formatProperty(run, object, key) {
  const descriptor = Object.getOwnPropertyDescriptor(object, key);
  const name = propertyKey(run, key, descriptor?.enumerable !== false);
  if (descriptor === undefined) return leaf(`${name}: ${primitive(undefined, run)}`);
  if (descriptor.get !== undefined) return leaf(`${name}: ${formatGetter(run, object, descriptor)}`);
  if (descriptor.set !== undefined) return leaf(`${name}: ${painted(run, "[Setter]", "special")}`);
  return leaf(`${name}: ${formatValue(run, descriptor.value).text}`);
}

function formatGetter(run, object, { get, set }) {
  const label = set === undefined ? "Getter" : "Getter/Setter";
  const isWanted = run.getters === true || run.getters === (set === undefined ? "get" : "set");
  if (!isWanted) return painted(run, `[${label}]`, "special");
  try {
    const value = get.call(object);
    const text = formatValue(run, value).text;
    if (typeof value === "object" && value !== null) return `${painted(run, `[${label}]`, "special")} ${text}`;
    return `${painted(run, `[${label}:`, "special")} ${text}${painted(run, "]", "special")}`;
  } catch (error) {
    return `[${label}: <Inspection threw (${error?.message ?? error})>]`;
  }
}

function ownEntries(run, object, skip = () => false) {
  const keys = (run.hidden ? Object.getOwnPropertyNames(object) : Object.keys(object)).filter((key) => !skip(key));
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    if (run.hidden || Object.getOwnPropertyDescriptor(object, symbol).enumerable) keys.push(symbol);
  }
  const entries = [];
  for (const key of keys) {
    if (run.written > MOST_CHARACTERS || entries.length >= MOST_PROPERTIES) return [...entries, more(keys.length - entries.length)];
    entries.push(formatProperty(run, object, key));
  }
  return run.sorted ? sortByText(entries) : entries;
}

function more(count) {
  return leaf(`... ${count} more item${count === 1 ? "" : "s"}`);
}

function isIndex(key) {
  return /^(?:0|[1-9]\d{0,9})$/.test(key);
}

function formatPlain(run, object) {
  const isArguments = objectToString.call(object) === "[object Arguments]";
  const prefix = isArguments ? "[Arguments]" : isPlain(object) ? "" : prefixOf(object, "Object");
  const entries = isEmpty(run, object) ? [] : nested(run, object, () => ownEntries(run, object));
  if (entries === null) return special(run, `[${constructorName(object) ?? "Object: null prototype"}]`);
  return group(run, prefix === "Object" ? "" : prefix, ["{", "}"], entries);
}

function formatArray(run, array) {
  const name = constructorName(array);
  const prefix = name === "Array" ? "" : prefixOf(array, "Array", array.length);
  const entries = array.length === 0 && isEmpty(run, array) ? [] : nested(run, array, () => {
    const items = [];
    let index = 0;
    for (; index < array.length && items.length < run.items; index++) {
      if (Object.hasOwn(array, index)) {
        const descriptor = Object.getOwnPropertyDescriptor(array, index);
        items.push("value" in descriptor ? formatValue(run, descriptor.value) : special(run, "[Getter]"));
        continue;
      }
      const start = index;
      while (index + 1 < array.length && index - start < 100_000 && !Object.hasOwn(array, index + 1)) index++;
      const count = index - start + 1;
      items.push(leaf(painted(run, `<${count} empty item${count === 1 ? "" : "s"}>`, "undefined")));
    }
    if (index < array.length) items.push(more(array.length - index));
    return items.concat(array.length > 10_000 ? [] : ownEntries(run, array, isIndex));
  });
  return entries === null ? special(run, "[Array]") : group(run, prefix, ["[", "]"], entries);
}

function formatTypedArray(run, array, kind) {
  const { length = 0 } = array;
  const items = [];
  for (let i = 0; i < Math.min(length, run.items); i++) items.push(leaf(primitive(array[i], run)));
  if (length > run.items) items.push(more(length - run.items));
  return group(run, prefixOf(array, kind, length), ["[", "]"], items);
}

function formatCollection(run, object, kind) {
  const size = getSize[kind].call(object);
  const entries = size === 0 && isEmpty(run, object) ? [] : nested(run, object, () => {
    const items = [];
    const add = (value, key) => {
      if (items.length >= run.items) return;
      const first = formatValue(run, key);
      if (kind === "Set") items.push(first);
      else {
        const second = formatValue(run, value);
        items.push(leaf(`${first.text} => ${second.text}`));
      }
    };
    (kind === "Map" ? mapForEach : setForEach).call(object, add);
    if (size > items.length) items.push(more(size - items.length));
    return items.concat(ownEntries(run, object));
  });
  return entries === null ? special(run, `[${kind}]`) : group(run, prefixOf(object, kind, size), ["{", "}"], entries);
}

function formatError(run, error) {
  const stack = stackOf(error, constructorName(error));
  const entries = nested(run, error, () => {
    const own = ownEntries(run, error, (key) => key === "cause" || (!run.hidden && isToldBy(stack, error, key)));
    for (const [key, label] of [["cause", "[cause]"], ["errors", "[errors]"]]) {
      const descriptor = Object.getOwnPropertyDescriptor(error, key);
      if (descriptor === undefined || !("value" in descriptor) || (key === "errors" && descriptor.enumerable)) continue;
      own.push(leaf(`${label}: ${formatValue(run, descriptor.value).text}`));
    }
    return own;
  });
  if (entries === null && !isEmpty(run, error)) return leaf(`[${errorToString.call(error)}]`);
  return entries === null || entries.length === 0 ? leaf(stack) : group(run, stack, ["{", "}"], entries);
}

function formatFunction(run, callable) {
  const isClass = /^class\b/.test(Function.prototype.toString.call(callable).slice(0, 6));
  const name = Object.getOwnPropertyDescriptor(callable, "name")?.value;
  const kind = isClass ? "class" : (constructorName(callable) ?? "Function (null prototype)");
  const label = typeof name === "string" && name !== "" ? name : "(anonymous)";
  const separator = isClass ? " " : label === "(anonymous)" ? " " : ": ";
  const parent = isClass ? Object.getPrototypeOf(callable)?.name : "";
  const base = `[${kind}${separator}${label}${parent ? ` extends ${parent}` : ""}]`;
  const entries = nested(run, callable, () => ownEntries(run, callable));
  return entries === null || entries.length === 0 ? special(run, base) : group(run, base, ["{", "}"], entries);
}

function formatInterface(run, object, { name, describe }) {
  const entries = nested(run, object, () => {
    const described = describe === undefined ? attributesOf(object) : describe(object);
    if (Array.isArray(described)) return described.map(([key, value]) => leaf(`${painted(run, quote(key), "string")} => ${painted(run, quote(value), "string")}`));
    return ownEntries(run, described);
  });
  const shown = constructorName(object) ?? name;
  return entries === null ? special(run, `[${shown}]`) : group(run, shown, ["{", "}"], entries);
}

// A value with a text of its own, followed by its properties, if any.
function withProperties(run, base, object, skip = undefined) {
  if (isEmpty(run, object)) return leaf(base);
  const entries = nested(run, object, () => ownEntries(run, object, skip)) ?? [];
  return entries.length === 0 ? leaf(base) : group(run, base, ["{", "}"], entries);
}

function formatDate(run, date) {
  return withProperties(run, painted(run, Number.isNaN(dateGetTime.call(date)) ? "Invalid Date" : dateToISO.call(date), "date"), date);
}

function formatBoxed(run, boxed) {
  const value = unbox(boxed);
  const base = painted(run, `[${constructorName(boxed) ?? "Object"}: ${primitive(value)}]`, typeof value);
  return withProperties(run, base, boxed, typeof value === "string" ? isIndex : undefined);
}

function formatBuffer(run, buffer) {
  const entries = nested(run, buffer, () => [...bufferContents(run, buffer).map(leaf), ...ownEntries(run, buffer)]);
  return entries === null ? special(run, "[ArrayBuffer]") : group(run, prefixOf(buffer, "ArrayBuffer"), ["{", "}"], entries);
}

function formatView(run, view) {
  const entries = nested(run, view, () => [
    ...["byteLength", "byteOffset", "buffer"].map((name) => leaf(`${painted(run, `[${name}]`, "string")}: ${formatValue(run, view[name]).text}`)),
    ...ownEntries(run, view),
  ]);
  return entries === null ? special(run, "[DataView]") : group(run, prefixOf(view, "DataView"), ["{", "}"], entries);
}

// Shows the target without running a trap.
function formatProxy(run, proxy) {
  const target = native.proxyTarget(proxy);
  if (target === null) return special(run, "<Revoked Proxy>");
  if (!run.proxies) return formatValue(run, target);
  const entries = nested(run, proxy, () => [formatValue(run, target), formatValue(run, native.proxyHandler(proxy))]);
  return entries === null ? special(run, "Proxy [Array]") : group(run, "Proxy", ["[", "]"], entries);
}

// The remaining items of a Map or Set iterator, without advancing it.
function formatIterator(run, iterator, kind) {
  const [items, arePairs] = native.previewEntries(iterator);
  const entries = nested(run, iterator, () => {
    const values = items.slice(0, run.items * (arePairs ? 2 : 1)).map((item) => formatValue(run, item).text);
    if (!arePairs) return values.map(leaf);
    return values.flatMap((text, i) => (i % 2 === 0 ? [leaf(`[ ${text}, ${values[i + 1]} ]`)] : []));
  });
  const name = arePairs ? kind.replace("Iterator", "Entries") : kind;
  return entries === null ? special(run, `[${name}]`) : group(run, `[${name}]`, ["{", "}"], entries);
}

function formatPromise(run, promise) {
  const [state, result] = native.promiseState(promise);
  const prefix = prefixOf(promise, "Promise");
  const entries = nested(run, promise, () => {
    const entry = state === 0 ? special(run, "<pending>") : formatValue(run, result);
    const text = state === 2 ? `${painted(run, "<rejected>", "special")} ${entry.text}` : entry.text;
    return [{ ...entry, text }, ...ownEntries(run, promise)];
  });
  return entries === null ? special(run, `[${constructorName(promise) ?? "Promise"}]`) : group(run, prefix, ["{", "}"], entries);
}

function formatUnknown(run, object, kind) {
  return group(run, prefixOf(object, kind), ["{", "}"], [special(run, "<items unknown>")]);
}

const FORMATTERS = {
  Object: formatPlain,
  Array: formatArray,
  Map: formatCollection,
  Set: formatCollection,
  Error: formatError,
  Function: formatFunction,
  Date: formatDate,
  RegExp: (run, regexp) => withProperties(run, painted(run, regExpToString.call(regexp), "regexp"), regexp),
  Promise: formatPromise,
  Proxy: formatProxy,
  "Map Iterator": formatIterator,
  "Set Iterator": formatIterator,
  WeakMap: formatUnknown,
  WeakSet: formatUnknown,
  ArrayBuffer: formatBuffer,
  DataView: formatView,
  Boxed: formatBoxed,
};
