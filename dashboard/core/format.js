// Numbers, times and sizes as people read them.
const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const two = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

export const NONE = "–";

export const count = (value) => (value === null || value === undefined ? NONE : value < 10_000 ? plain.format(value) : short.format(value));

export function ms(value) {
  if (value === null || value === undefined) return NONE;
  if (value >= 60_000) return `${one.format(value / 60_000)} min`;
  if (value >= 1_000) return `${two.format(value / 1_000)} s`;
  return `${(value >= 100 ? plain : value >= 10 ? one : two).format(value >= 100 ? Math.round(value) : value)} ms`;
}

export function share(part, whole) {
  if (!whole) return NONE;
  const percent = (100 * part) / whole;
  if (!part) return "0 %";
  return percent < 0.1 ? "< 0.1 %" : `${(percent < 10 ? one : plain).format(percent < 10 ? percent : Math.round(percent))} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1024 && place < units.length - 1) {
    value /= 1024;
    place += 1;
  }
  return `${one.format(value)} ${units[place]}`;
}

export const time = (text) => moment.format(new Date(text));
export const timeOfDay = (text) => `${clock.format(new Date(text))}.${String(new Date(text).getMilliseconds()).padStart(3, "0")}`;

const AGES = [
  [60, 1, "s"],
  [3_600, 60, "min"],
  [86_400, 3_600, "h"],
  [2_592_000, 86_400, "d"],
  [Infinity, 2_592_000, "mo"],
];

export function ago(text, now = Date.now()) {
  const seconds = Math.round((now - Date.parse(text)) / 1_000);
  const left = seconds < 0;
  const size = Math.abs(seconds);
  const [, unit, name] = AGES.find(([below]) => size < below);
  if (size < 5) return "now";
  const said = `${Math.floor(size / unit)} ${name}`;
  return left ? `in ${said}` : `${said} ago`;
}

/** Characters that change the direction of text would disguise names: they are shown as what they are. */
export const visible = (text) =>
  String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (char) =>
    `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const cut = (text, most = 2_000) => (text.length > most ? `${text.slice(0, most)}…` : text);
