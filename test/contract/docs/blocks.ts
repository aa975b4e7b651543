/** Reads the code blocks of a page, with the comments that control their checks. */

export interface Block {
  /** Path of the page from the root of the package. */
  readonly page: string;
  /** Line of the page on which the code begins. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The text between the previous block and this one. */
  readonly before: string;
  /** The text between this block and the next one. */
  readonly after: string;
  /** `<!-- example: skip REASON -->` right before the block: it is not checked, for this reason. */
  readonly skip: string | undefined;
  /** `<!-- example: given CODE -->`: declarations that the reader has to imagine. */
  readonly given: string;
}

const fence = /^```(\w*)[^\n]*\n(.*?)^```$/gms;
const marker = /<!-- example: (skip|given) (.*?) -->\s*$/s;

export function blocksOf(page: string, text: string): Block[] {
  const found = [...text.matchAll(fence)];
  return found.map((match, at) => {
    const [whole, language = "", code = ""] = match;
    const end = match.index + whole.length;
    const last = found[at - 1];
    const before = text.slice(last === undefined ? 0 : last.index + last[0].length, match.index);
    const [, word, said = ""] = marker.exec(before) ?? [];
    return {
      page,
      language,
      code,
      before,
      line: text.slice(0, match.index).split("\n").length + 1,
      after: text.slice(end, found[at + 1]?.index),
      skip: word === "skip" ? said : undefined,
      given: word === "given" ? said : "",
    };
  });
}

/** Returns the position of a block, for the names of tests. */
export const positionOf = ({ page, line }: Block): string => `${page}:${line}`;
