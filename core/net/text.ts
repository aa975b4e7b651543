/** Control characters (the tab excepted), line separators, and marks that turn the direction of writing. */
const steering = /[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]--[\t]]/gv;

/** Text from outside as one line that cannot steer a terminal: what could is written as `\x1b` or `\u202e`. */
export function printable(text: string): string {
  return text.replace(steering, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}
