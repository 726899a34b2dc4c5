// https://nodejs.org/api/util.html#utilparseargsconfig
import { codedError, invalidArgument } from "./errors.js";

const code = (name) => `ERR_PARSE_ARGS_${name}`;

// "-abc" means "-a -b -c" if these options take no value. The text after an option with a value is its value.
function* expand(args, options) {
  const byShort = Object.fromEntries(Object.entries(options).filter(([, { short }]) => short !== undefined).map(([name, { short }]) => [short, name]));
  for (let index = 0; index < args.length; index++) {
    const arg = args[index];
    if (arg === "--") {
      yield { kind: "option-terminator", index };
      for (index++; index < args.length; index++) yield { kind: "positional", index, value: args[index] };
      return;
    }
    if (/^-[^-]/.test(arg)) {
      for (let at = 1; at < arg.length; at++) {
        const name = byShort[arg[at]] ?? arg[at];
        const token = { kind: "option", name, rawName: `-${arg[at]}`, index, value: undefined, inlineValue: undefined };
        if (options[name]?.type === "string") {
          if (at + 1 < arg.length) Object.assign(token, { value: arg.slice(at + 1).replace(/^=/, ""), inlineValue: true });
          else if (index + 1 < args.length && isValue(args[index + 1])) Object.assign(token, { value: args[++index], inlineValue: false });
          yield token;
          break;
        }
        yield token;
      }
    } else if (arg.startsWith("--")) {
      const [, rawName, , value] = /^(--([^=]*))(?:=(.*))?$/s.exec(arg);
      const name = rawName.slice(2);
      const token = { kind: "option", name, rawName, index, value, inlineValue: value === undefined ? undefined : true };
      if (value === undefined && options[name]?.type === "string" && index + 1 < args.length && isValue(args[index + 1])) {
        Object.assign(token, { value: args[++index], inlineValue: false });
      }
      yield token;
    } else {
      yield { kind: "positional", index, value: arg };
    }
  }
}

// A text that looks like an option is not a value, unless it is a single dash.
function isValue(text) {
  return text === "-" || !text.startsWith("-");
}

function applyNegation(token, options) {
  if (options[token.name] !== undefined || !token.name.startsWith("no-")) return token;
  const name = token.name.slice(3);
  return options[name]?.type === "boolean" ? { ...token, name, isNegated: true } : token;
}

function check({ name, rawName, value, isNegated }, options) {
  const option = options[name];
  if (option === undefined) throw codedError(TypeError, code("UNKNOWN_OPTION"), `Unknown option '${rawName}'`);
  if (option.type === "string" && value === undefined) {
    throw codedError(TypeError, code("INVALID_OPTION_VALUE"), `Option '${rawName} <value>' argument missing`);
  }
  if (option.type === "boolean" && (value !== undefined || (isNegated && value !== undefined))) {
    throw codedError(TypeError, code("INVALID_OPTION_VALUE"), `Option '${rawName}' does not take an argument`);
  }
}

function store(values, { name, value, isNegated }, multiple) {
  const stored = value ?? !isNegated;
  if (name === "__proto__") return;
  if (multiple) (values[name] ??= []).push(stored);
  else values[name] = stored;
}

export function parseArgs(config = {}) {
  const { args = [], options = {}, strict = true, allowPositionals = !strict, allowNegative = false, tokens: wantsTokens = false } = config;
  if (!Array.isArray(args)) throw invalidArgument("args", "an instance of Array", args);
  for (const [name, { type }] of Object.entries(options)) {
    if (type !== "string" && type !== "boolean") throw invalidArgument(`options.${name}.type`, "('string'|'boolean')", type);
  }
  const values = { __proto__: null };
  const positionals = [];
  const tokens = [];
  for (const given of expand(args.map(String), options)) {
    const token = given.kind === "option" && allowNegative ? applyNegation(given, options) : given;
    tokens.push(given);
    if (token.kind === "positional") {
      if (!allowPositionals) {
        throw codedError(TypeError, code("UNEXPECTED_POSITIONAL"), `Unexpected argument '${token.value}'. This command does not take positional arguments`);
      }
      positionals.push(token.value);
    } else if (token.kind === "option") {
      if (strict) check(token, options);
      store(values, token, options[token.name]?.multiple);
    }
  }
  for (const [name, option] of Object.entries(options)) {
    if (option.default !== undefined && values[name] === undefined) values[name] = option.default;
  }
  return wantsTokens ? { values, positionals, tokens } : { values, positionals };
}
