/** Wraps comments and Markdown at a width. Only paragraphs with a line that is too wide change. */
import type { Comment } from "./comments.ts";

export const WIDTH = 100;

/** Tokens that stay on one line: inline code, links and words. */
const token = /(?:\[[^\]\n]*\]\([^)\s]*\)|`[^`\n]*`|[^\s`[]|\[)+/g;

/** Breaks a text into lines of at most `width` characters; a longer token has a line of its own. */
export function wrapText(text: string, width: number, firstWidth = width): string[] {
  const lines: string[] = [];
  let line = "";
  for (const [word] of text.matchAll(token)) {
    const room = lines.length === 0 ? firstWidth : width;
    if (line !== "" && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  if (line !== "") lines.push(line);
  return lines;
}

/** Where a paragraph of prose begins: a list item, a tag of a docstring, a table row. */
const item = /^(\s*(?:[-*+]|\d+[.)])\s+|\s*@\w+\s)/;
const untouched = /^\s*(?:\||#|<|\[[^\]]+\]:|>)/;

/** Wraps the lines of a text that has paragraphs, lists, tables and code fences. */
export function wrapLines(lines: readonly string[], width: number): string[] {
  const out: string[] = [];
  let fence: string | undefined;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] as string;
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence !== undefined || mark !== undefined) {
      if (fence === undefined) fence = mark;
      else if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined;
      out.push(line);
      at++;
      continue;
    }
    if (line.trim() === "" || untouched.test(line) || isCode(lines, at)) {
      out.push(line);
      at++;
      continue;
    }
    const end = paragraphEnd(lines, at);
    out.push(...wrapParagraph(lines.slice(at, end), width));
    at = end;
  }
  return out;
}

/**
 * A line of indented code: the lines above it are code as well, or it begins after an empty line.
 * Below an item of a list, an indented line is a paragraph of the item.
 */
function isCode(lines: readonly string[], at: number): boolean {
  if (!/^ {4}/.test(lines[at] as string)) return false;
  const above = lines.slice(0, at);
  const text = above.findLast((line) => line.trim() !== "" && !/^ {4}/.test(line));
  const begin = above.findLastIndex((line) => line.trim() !== "" && !/^ {4}/.test(line)) + 1;
  return (
    (begin === 0 || lines[begin]?.trim() === "") && (text === undefined || !/^ {0,3}(?:[-*+]|\d+[.)]| {2})/.test(text))
  );
}

function paragraphEnd(lines: readonly string[], begin: number): number {
  let end = begin + 1;
  while (end < lines.length) {
    const line = lines[end] as string;
    if (line.trim() === "" || untouched.test(line) || item.test(line) || /^\s*(?:```|~~~)/.test(line)) break;
    // Two spaces or a backslash at the end of a line are a line break.
    if (/(?: {2}|\\)$/.test(lines[end - 1] as string)) break;
    end++;
  }
  return end;
}

function wrapParagraph(paragraph: readonly string[], width: number): readonly string[] {
  if (paragraph.every((line) => fits(line, width))) return paragraph;
  const [first = "", ...rest] = paragraph;
  const lead = item.exec(first)?.[0] ?? /^\s*/.exec(first)?.[0] ?? "";
  const isTag = lead.trimStart().startsWith("@");
  const indent = rest.length > 0 ? (/^\s*/.exec(rest[0] as string)?.[0] ?? "") : isTag ? "" : " ".repeat(lead.length);
  const text = [first.slice(lead.length), ...rest].map((line) => line.trim()).join(" ");
  const lines = wrapText(text, width - indent.length, width - lead.length);
  return lines.map((line, at) => (at === 0 ? lead : indent) + line);
}

/** Whether a line is narrow enough, or cannot be broken. */
export function fits(line: string, width: number): boolean {
  return (
    line.length <= width ||
    !/\S\s/.test(
      line
        .trim()
        .replace(/^(?:[-*+]|\d+[.)])\s+/, "")
        .replaceAll(token, "x"),
    )
  );
}

/**
 * The comment with its lines wrapped, marks and indentation included; the first line has no
 * indentation.
 */
export function wrapComment({ source, column, isAlone }: Comment): string {
  // A comment behind code or in it is part of a line that the formatter owns.
  if (!isAlone) return source;
  const indent = " ".repeat(column);
  if (source.split("\n").every((line, at) => (at === 0 ? column : 0) + line.length <= WIDTH)) return source;
  if (source.startsWith("//")) {
    const lines = source.split("\n").map((line) => line.replace(/^\s*\/\/ ?/, ""));
    return wrapLines(lines, WIDTH - column - 3)
      .map((line, at) => (at === 0 ? "" : indent) + (line === "" ? "//" : `// ${line}`))
      .join("\n");
  }
  const open = source.startsWith("/**") ? "/**" : "/*";
  const lines = source
    .slice(open.length, -2)
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  if ((lines[0] as string).trim() === "") lines.shift();
  else lines[0] = (lines[0] as string).trimStart();
  if (lines.at(-1)?.trim() === "") lines.pop();
  const wrapped = wrapLines(lines, WIDTH - column - 3).map((line) => `${indent} *${line === "" ? "" : ` ${line}`}`);
  return `${open}\n${wrapped.join("\n")}\n${indent} */`;
}
