/** Finds the comments of a source file. */
import type { TextRange } from "./scan.ts";

export interface Comment extends TextRange {
  /** Line of the file, from 1. */
  readonly line: number;
  /** Column of its first character, from 0. */
  readonly column: number;
  /** Whether nothing but spaces stands before it on its first line. */
  readonly isAlone: boolean;
  /** The whole comment with its marks. Line comments that follow each other are one comment. */
  readonly source: string;
}

/** Comments that a program reads. */
const directive = /^(?:\/\/|\/\*\*?)\s*(?:biome-ignore|@ts-|#|eslint|c8 |@vite|sourceMappingURL)/;

/** `ranges`: the comments as `scan` finds them. */
export function commentsOf(source: string, ranges: readonly TextRange[]): Comment[] {
  const comments: Comment[] = [];
  let line = 1;
  let counted = 0;
  for (const { start, end } of ranges) {
    for (let at = source.indexOf("\n", counted); at !== -1 && at < start; at = source.indexOf("\n", counted)) {
      line++;
      counted = at + 1;
    }
    const text = source.slice(start, end);
    if (directive.test(text)) continue;
    const comment = {
      start,
      end,
      line,
      column: start - counted,
      isAlone: isBlank(source, counted, start),
      source: text,
    };
    const before = comments.at(-1);
    if (before !== undefined && continues(source, before, comment))
      comments[comments.length - 1] = { ...before, end, source: source.slice(before.start, end) };
    else comments.push(comment);
  }
  return comments;
}

/** Line comments below each other, with the same indentation, are one text. */
function continues(source: string, before: Comment, { source: text, start, column, isAlone }: Comment): boolean {
  return (
    isAlone &&
    column === before.column &&
    text.startsWith("//") &&
    before.source.startsWith("//") &&
    source.indexOf("\n", before.end) === start - column - 1
  );
}

const isBlank = (source: string, start: number, end: number): boolean => source.slice(start, end).trim() === "";
