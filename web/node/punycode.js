// https://nodejs.org/api/punycode.html: Punycode of RFC 3492. https://www.rfc-editor.org/rfc/rfc3492#section-6

const BASE = 36;
const T_MIN = 1;
const T_MAX = 26;
const SKEW = 38;
const DAMP = 700;
const INITIAL_BIAS = 72;
const INITIAL_N = 128;

/** https://www.rfc-editor.org/rfc/rfc3492#section-6.1 */
function adapt(delta, count, isFirst) {
  let rest = isFirst ? Math.floor(delta / DAMP) : delta >> 1;
  rest += Math.floor(rest / count);
  let k = 0;
  for (; rest > ((BASE - T_MIN) * T_MAX) >> 1; k += BASE) rest = Math.floor(rest / (BASE - T_MIN));
  return k + Math.floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW));
}

function threshold(k, bias) {
  return k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
}

function digitOf(code) {
  if (code >= 48 && code <= 57) return code - 22;
  const letter = code | 32;
  return letter >= 97 && letter <= 122 ? letter - 97 : BASE;
}

/** https://www.rfc-editor.org/rfc/rfc3492#section-6.2 */
export function decode(text) {
  const border = Math.max(0, text.lastIndexOf("-"));
  const output = Array.from(text.slice(0, border), (char) => char.codePointAt(0));
  if (output.some((code) => code >= 128)) throw new RangeError("Illegal input >= 0x80 (not a basic code point)");
  let n = INITIAL_N;
  let i = 0;
  let bias = INITIAL_BIAS;
  for (let at = border > 0 ? border + 1 : 0; at < text.length; ) {
    const before = i;
    for (let weight = 1, k = BASE; ; k += BASE) {
      if (at >= text.length) throw new RangeError("Invalid input");
      const digit = digitOf(text.charCodeAt(at++));
      if (digit >= BASE || digit > (0x7fffffff - i) / weight) throw new RangeError("Invalid input");
      i += digit * weight;
      const t = threshold(k, bias);
      if (digit < t) break;
      weight *= BASE - t;
    }
    const count = output.length + 1;
    bias = adapt(i - before, count, before === 0);
    n += Math.floor(i / count);
    i %= count;
    if (n > 0x10ffff) throw new RangeError("Invalid input");
    output.splice(i++, 0, n);
  }
  return output.map((code) => String.fromCodePoint(code)).join("");
}

function toDigit(value) {
  return String.fromCharCode(value < 26 ? value + 97 : value + 22);
}

/** https://www.rfc-editor.org/rfc/rfc3492#section-6.3 */
export function encode(text) {
  const codes = Array.from(text, (char) => char.codePointAt(0));
  const basic = codes.filter((code) => code < 128);
  let output = basic.map((code) => String.fromCharCode(code)).join("");
  let handled = basic.length;
  if (handled > 0) output += "-";
  let n = INITIAL_N;
  let delta = 0;
  let bias = INITIAL_BIAS;
  while (handled < codes.length) {
    const next = codes.reduce((least, code) => (code >= n && code < least ? code : least), 0x7fffffff);
    if (next - n > (0x7fffffff - delta) / (handled + 1)) throw new RangeError("Overflow: input needs wider integers to process");
    delta += (next - n) * (handled + 1);
    n = next;
    for (const code of codes) {
      if (code < n) delta++;
      if (code !== n) continue;
      let rest = delta;
      for (let k = BASE; ; k += BASE) {
        const t = threshold(k, bias);
        if (rest < t) break;
        output += toDigit(t + ((rest - t) % (BASE - t)));
        rest = Math.floor((rest - t) / (BASE - t));
      }
      output += toDigit(rest);
      bias = adapt(delta, handled + 1, handled === basic.length);
      delta = 0;
      handled++;
    }
    delta++;
    n++;
  }
  return output;
}

// Maps the labels of a domain, or of the domain in an email address.
function mapDomain(text, map) {
  const at = text.lastIndexOf("@");
  const labels = text.slice(at + 1).replace(/[\u3002\uff0e\uff61]/g, ".").split(".");
  return text.slice(0, at + 1) + labels.map(map).join(".");
}

export function toUnicode(text) {
  return mapDomain(text, (label) => (label.startsWith("xn--") ? decode(label.slice(4).toLowerCase()) : label));
}

export function toASCII(text) {
  return mapDomain(text, (label) => (/[^\0-\x7f]/.test(label) ? `xn--${encode(label)}` : label));
}

export const ucs2 = {
  decode: (text) => Array.from(text, (char) => char.codePointAt(0)),
  encode: (codes) => codes.map((code) => String.fromCodePoint(code)).join(""),
};

export const version = "2.3.1";
