// https://encoding.spec.whatwg.org/#names-and-labels, of the encodings there are.

const LABELS = {
  "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
  "utf-16be": "unicodefffe utf-16be",
  "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
  "windows-1252":
    "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 " +
    "iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
};

const nameOf = new Map();
for (const [name, labels] of Object.entries(LABELS)) for (const label of labels.split(" ")) nameOf.set(label, name);

const ASCII_WHITESPACE = /^[\t\n\f\r ]+|[\t\n\f\r ]+$/g;

/** https://encoding.spec.whatwg.org/#concept-encoding-get: the name in lower case, or undefined. */
export function getEncoding(label) {
  return nameOf.get(label) ?? nameOf.get(label.replace(ASCII_WHITESPACE, "").toLowerCase());
}
