/** Finds the comments and the declared names of a source file. */
import ts from "typescript";

export interface Comment {
  /** Offset of its first character in the file. */
  readonly start: number;
  readonly end: number;
  /** Line of the file, from 1. */
  readonly line: number;
  /** Column of its first character, from 0. */
  readonly column: number;
  /** Whether nothing but spaces stands before it on its first line. */
  readonly isAlone: boolean;
  /** The whole comment with its marks. Line comments that follow each other are one comment. */
  readonly source: string;
  /** Its words, in one line. */
  readonly text: string;
}

export interface DeclaredName {
  readonly name: string;
  readonly line: number;
}

/** Comments that a program reads. */
const directive = /^(?:\/\/|\/\*\*?)\s*(?:biome-ignore|@ts-|#|eslint|c8 |@vite|sourceMappingURL)/;

export function parse(source: string): ts.SourceFile {
  return ts.createSourceFile("source.ts", source, ts.ScriptTarget.Latest, true);
}

export function commentsOf(file: ts.SourceFile): Comment[] {
  const source = file.text;
  const comments: Comment[] = [];
  for (const { start, end } of commentRanges(file)) {
    const lineStart = source.lastIndexOf("\n", start - 1) + 1;
    const text = source.slice(start, end);
    if (directive.test(text)) continue;
    const before = comments.at(-1);
    const isAlone = /^\s*$/.test(source.slice(lineStart, start));
    // Single-line comments below each other, with the same indentation, hold one text.
    if (
      isAlone &&
      before !== undefined &&
      text.startsWith("//") &&
      before.source.startsWith("//") &&
      before.column === start - lineStart &&
      /^\r?\n[ \t]*$/.test(source.slice(before.end, start))
    ) {
      comments[comments.length - 1] = { ...before, end, ...words(source.slice(before.start, end)) };
      continue;
    }
    comments.push({ start, end, line: lineOf(source, start), column: start - lineStart, isAlone, ...words(text) });
  }
  return comments;
}

function words(source: string): Pick<Comment, "source" | "text"> {
  return { source, text: wordsOf(source) };
}

function wordsOf(comment: string): string {
  return comment
    .replace(/^\/\*\*?|\*\/$/g, "")
    .replace(/^[ \t]*(?:\/\/|\*)[ \t]?/gm, "")
    .replace(/\s+/g, " ")
    .trim();
}

function lineOf(source: string, offset: number): number {
  let line = 1;
  for (let at = source.indexOf("\n"); at !== -1 && at < offset; at = source.indexOf("\n", at + 1)) line++;
  return line;
}

/**
 * The parser decides what a comment is: a scanner alone takes `//` in a template or a pattern for
 * one.
 */
function commentRanges(file: ts.SourceFile): { start: number; end: number }[] {
  const source = file.text;
  const found = new Map<number, number>();
  const add = (ranges: readonly ts.CommentRange[] | undefined) => {
    for (const { pos, end } of ranges ?? []) found.set(pos, end);
  };
  const visit = (node: ts.Node): void => {
    add(ts.getLeadingCommentRanges(source, node.pos));
    add(ts.getTrailingCommentRanges(source, node.end));
    // Templates have no comments between their pieces.
    for (const child of ts.isTemplateExpression(node)
      ? node.templateSpans.map((span) => span.expression)
      : node.getChildren(file))
      visit(child);
  };
  visit(file);
  return [...found].map(([start, end]) => ({ start, end })).sort((one, other) => one.start - other.start);
}

/**
 * Names that a file declares: of files, types, functions, classes, members, parameters and
 * variables.
 */
export function declaredNames(file: ts.SourceFile): DeclaredName[] {
  const names: DeclaredName[] = [];
  const visit = (node: ts.Node): void => {
    const { name } = node as { name?: ts.Node };
    const declares =
      name !== undefined &&
      (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) &&
      !ts.isPropertyAccessExpression(node) &&
      !ts.isImportSpecifier(node) &&
      !ts.isMetaProperty(node);
    if (declares)
      names.push({ name: name.text, line: file.getLineAndCharacterOfPosition(name.getStart(file)).line + 1 });
    ts.forEachChild(node, visit);
  };
  visit(file);
  return names;
}
