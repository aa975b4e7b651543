/** Text for a terminal: colours, where they are wanted, and columns that it takes up. */
import { stripVTControlCharacters } from "node:util";

/** What is known of a stream that may be a terminal. */
export interface MaybeTerminal {
  readonly isTTY?: boolean;
}

/**
 * Whether text that is written there is coloured. FORCE_COLOR decides (not when it is 0 or false), then NO_COLOR, when it
 * is not empty; else a terminal is that does not call itself dumb.
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

/** Gives texts their colours, or leaves them as they are. */
export function painter(isWanted: boolean): Paint {
  return isWanted ? colored : plain;
}

const ascii = /^[ -~]*$/;
let segmenter: Intl.Segmenter | undefined;
/** Made with the first text that needs it: that reads the locales, a twentieth of a start. */
const graphemes = (text: string) => (segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" })).segment(text);
/** East Asian wide and full-width characters, and pictures. */
const wide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])/u;

/** Columns that a text takes up, its colours left out. */
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

/** A text in no more than so many columns; an ellipsis stands for what is left out. Its colours stay. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width < 1) return "";
  let [kept, used, isColored] = ["", 1, false];
  for (const [at, part] of text.split(colorings).entries()) {
    // What was split by stands between.
    if (at % 2 === 1) {
      kept += part;
      isColored = part !== COLORS_END;
      continue;
    }
    for (const { segment } of graphemes(part)) {
      used += wide.test(segment) ? 2 : 1;
      if (used > width) return `${kept}…${isColored ? COLORS_END : ""}`;
      kept += segment;
    }
  }
  return kept;
}

/** Spaces behind a text, up to so many columns. */
export function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}
