/** Formats text for a terminal: colours, and the number of columns. */
import { stripVTControlCharacters } from "node:util";

/** A stream that may be a terminal. */
export interface MaybeTerminal {
  readonly isTTY?: boolean;
}

/**
 * Returns true if text for the stream is coloured. FORCE_COLOR decides first (0 and false mean no),
 * then a non-empty NO_COLOR; otherwise a terminal that is not dumb.
 */
export function isColored(stream: MaybeTerminal, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: none, TERM: name } = env;
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  if (none !== undefined && none !== "") return false;
  return stream.isTTY === true && name !== "dumb";
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Style = keyof typeof codes;
export type Paint = (style: Style, text: string) => string;

const colored: Paint = (style, text) => (text === "" ? "" : `\u001b[${codes[style]}m${text}\u001b[0m`);
const plain: Paint = (_style, text) => text;

/** Returns a function that colours texts, or one that leaves them unchanged. */
export function painter(isWanted: boolean): Paint {
  return isWanted ? colored : plain;
}

const ascii = /^[ -~]*$/;
let segmenter: Intl.Segmenter | undefined;
/**
 * Created with the first text that needs it, because reading the locales costs a twentieth of a
 * start.
 */
const graphemes = (text: string) => (segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" })).segment(text);
/** East Asian wide and full-width characters, and emoji. */
const wide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])/u;

/** Returns the number of columns of a text, without its colours. */
export function widthOf(text: string): number {
  const shown = text.includes("\u001b") ? stripVTControlCharacters(text) : text;
  if (ascii.test(shown)) return shown.length;
  let width = 0;
  for (const { segment } of graphemes(shown)) width += wide.test(segment) ? 2 : 1;
  return width;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const colorings = /(\u001b\[\d+m)/;
const COLORS_END = "\u001b[0m";

/** Cuts a text to a number of columns and adds an ellipsis. Its colours stay. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width < 1) return "";
  let shown = "";
  let used = 1;
  let isColored = false;
  for (const [at, part] of text.split(colorings).entries()) {
    // Every second part is a colour code.
    if (at % 2 === 1) {
      shown += part;
      isColored = part !== COLORS_END;
      continue;
    }
    for (const { segment } of graphemes(part)) {
      used += wide.test(segment) ? 2 : 1;
      if (used > width) return `${shown}…${isColored ? COLORS_END : ""}`;
      shown += segment;
    }
  }
  return shown;
}

/** Pads a text with spaces up to a number of columns. */
export function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}
