/** Text as Go prints it. */

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\f": "\\f",
  "\b": "\\b",
  "\x07": "\\a",
};

/** As `%q`: quotes, backslashes and what cannot be printed are escaped. */
export function quote(text: string): string {
  const inner = text.replace(/["\\]|\p{C}|(?! )\p{Z}/gu, (letter) => escapes[letter] ?? codeOf(letter));
  return `"${inner}"`;
}

function codeOf(letter: string): string {
  const code = letter.codePointAt(0) as number;
  const hex = code.toString(16);
  if (code < 0x20) return `\\x${hex.padStart(2, "0")}`;
  return code > 0xffff ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
}

/** A name as it is printed in lists: what cannot be printed is escaped, and then backslashes are, too. */
export function printable(text: string): string {
  return /[\\]|\p{C}|(?! )\p{Z}/u.test(text) ? quote(text).slice(1, -1).replaceAll('\\"', '"') : text;
}

const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };

const unsafe = /[<>&\u2028\u2029]/g;

/**
 * Compact JSON as Go writes it: `<`, `>`, `&` and the line separators are escaped. BigInts are integers.
 * Keys keep their order: those of a Go struct do, those of a Go map are sorted by whoever makes the value.
 */
export function goJson(value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? "null";
  } catch (error) {
    if (!(error instanceof TypeError) || !/BigInt/.test(error.message)) throw error;
    text = JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? rawJson(String(each)) : each));
  }
  return text.replace(unsafe, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
