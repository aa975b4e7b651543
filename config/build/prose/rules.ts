/** The rules of comments, names and prose. docs/contributing/style.md explains them. */

import { codeFindings, declaredNames, mayHaveCodeFindings, parse } from "./code.ts";
import { commentsOf } from "./comments.ts";
import { type Scan, scan } from "./scan.ts";
import { fits, WIDTH, wrapComment, wrapLines } from "./wrap.ts";

export interface Finding {
  readonly line: number;
  readonly rule: string;
  readonly text: string;
  /** The word or name that the rule rejects, for the list of exceptions. */
  readonly word?: string;
}

const MAX_SUBJECT = 72;

interface SentenceRule {
  readonly rule: string;
  readonly pattern: RegExp;
}

/**
 * Forms of sentences that nobody would say aloud. Each pattern sees one sentence; questions pass.
 * The list stays short: a pattern with many false alarms would be worked around.
 */
const sentenceRules: readonly SentenceRule[] = [
  {
    rule: "headless sentence: say who does what",
    pattern:
      /^(?:What|Who|Whose|Whom|Whoever|Whatever|Those (?:that|which|who|whose|of|for|to|in|on|at|by|with|without|from|among|behind|below|above))\b/,
  },
  { rule: "headless sentence: name what it belongs to", pattern: /^Of (?!course\b)\w/ },
  { rule: "headless sentence: use the noun instead of 'one'", pattern: /^One (?:of|that|which|who)\b/ },
  { rule: "negation: say what happens instead", pattern: /\b(?:no|any) more(?=[,.;:)]|$)|\bnone of both\b/i },
];

/** Words of comments and docs that have a plainer one: the second is what to write. */
const plainerWords: ReadonlyMap<string, string> = new Map([
  ["anew", "again"],
  ["beside", "next to, in addition to"],
  ["lent", "shared, leased"],
  ["lends", "shares, leases"],
  ["lending", "sharing, leasing"],
]);
const plainerRule = (word: string) => `'${word}': write ${plainerWords.get(word.toLowerCase())}`;
const plainer = new RegExp(`\\b(?:${[...plainerWords.keys()].join("|")})\\b`, "i");

/** Words that no declared name and no file name has, with the words of the field. */
const bannedWords: ReadonlyMap<string, string> = new Map([
  ["figure", "metric"],
  ["figures", "metrics"],
  ["answer", "response"],
  ["answers", "responses"],
  ["answered", "responded"],
  ["answering", "responding"],
  ["place", "address, position, path"],
  ["places", "addresses, positions, paths"],
  ["held", "current, pinned, retained, paused"],
  ["kept", "current, stored, retained"],
  ["lent", "shared, leased"],
  ["lend", "share, lease"],
  ["lending", "sharing, leasing"],
  ["borrow", "lease"],
  ["borrowed", "leased"],
  ["door", "IPC socket, entry point"],
  ["mend", "fix, recover"],
  ["mended", "fixed, recovered"],
  ["former", "previous"],
  ["successor", "next process"],
  ["today", "the level, such as kubo_0_43"],
  ["asked", "requested"],
  ["asking", "request"],
  ["openings", "pending opens"],
  ["examine", "inspect"],
  ["calm", "debounce"],
  ["steering", "connection routing"],
  ["blame", "attribute error"],
  ["anew", "again"],
  ["beside", "next to"],
  ["told", "reported, notified"],
  ["tell", "report, notify"],
  ["tells", "reports, notifies"],
  ["hear", "listen, onEvent"],
  ["hears", "listens"],
]);

function wordsOfName(name: string): string[] {
  return name
    .replace(/^#/, "")
    .split(/[_\-./]|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/)
    .map((word) => word.toLowerCase());
}

const suggestions = new Map<string, string | undefined>();

/** The rule that a name breaks, as a text. Most names occur in many files. */
function bannedIn(name: string): string | undefined {
  if (!suggestions.has(name)) suggestions.set(name, suggestionFor(name));
  return suggestions.get(name);
}

function suggestionFor(name: string): string | undefined {
  const word = wordsOfName(name).find((one) => bannedWords.has(one));
  return word === undefined ? undefined : `${name}: instead of '${word}' write ${bannedWords.get(word)}`;
}

/** Sentences of a text without its code spans, which may say anything. */
function sentencesOf(text: string): string[] {
  return text
    .replace(/`[^`]*`/g, "`code`")
    .split(/(?<=[.?!])\s+(?=[A-Z`(])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "");
}

function sentenceFindings(text: string, line: number): Finding[] {
  const findings: Finding[] = [];
  for (const sentence of sentencesOf(text)) {
    if (sentence.endsWith("?")) continue;
    for (const { rule, pattern } of sentenceRules)
      if (pattern.test(sentence)) findings.push({ line, rule, text: sentence });
    const [word] = plainer.exec(sentence) ?? [];
    if (word !== undefined) findings.push({ line, rule: plainerRule(word), text: sentence, word });
  }
  return findings;
}

/** Lines of a comment that are list items or tags are read by themselves. */
function blocksOf(comment: string): string[] {
  return comment
    .replace(/^\/\*\*?|\*\/$/g, "")
    .replace(/^[ \t]*(?:\/\/|\*)[ \t]?/gm, "")
    .split(/\n\s*\n|\n(?=\s*(?:[-*+] |\d+[.)] |@\w))/)
    .map((block) =>
      block
        .replace(/^\s*(?:[-*+] |\d+[.)] |@\w+ ?)/, "")
        .replace(/\s+/g, " ")
        .trim(),
    );
}

/** `scanned`: what `scan` returns for the source. */
export function sourceFindings(path: string, source: string, scanned: Scan = scan(source)): Finding[] {
  const findings: Finding[] = [];
  const fileName = (path.split("/").at(-1) as string).replace(/\.\w+$/, "");
  const fileWord = bannedIn(fileName);
  if (fileWord !== undefined) findings.push({ line: 1, rule: "name of the file", text: fileWord, word: fileName });
  for (const comment of commentsOf(source, scanned.comments)) {
    for (const block of blocksOf(comment.source)) findings.push(...sentenceFindings(block, comment.line));
    if (wrapComment(comment) !== comment.source)
      findings.push({
        line: comment.line,
        rule: `comment wider than ${WIDTH} columns: npm run format`,
        text: comment.source.replace(/\s+/g, " "),
      });
  }
  const hasBannedName = scanned.identifiers.values().some((name) => bannedIn(name) !== undefined);
  const isSuspicious = mayHaveCodeFindings(source);
  if (!hasBannedName && !isSuspicious) return findings;
  const file = parse(source);
  for (const { name, line } of hasBannedName ? declaredNames(file) : []) {
    const text = bannedIn(name);
    if (text !== undefined) findings.push({ line, rule: "name", text, word: name });
  }
  if (isSuspicious) findings.push(...codeFindings(file));
  return findings;
}

export function wrapSource(source: string): string {
  let out = source;
  for (const comment of commentsOf(source, scan(source).comments).reverse())
    out = out.slice(0, comment.start) + wrapComment(comment) + out.slice(comment.end);
  return out;
}

export function wrapMarkdown(source: string): string {
  return wrapLines(source.split("\n"), WIDTH).join("\n");
}

/** Commit subjects that are too long to be shown in one line. */
export function subjectFindings(subjects: readonly string[]): Finding[] {
  return subjects
    .filter((subject) => subject.length > MAX_SUBJECT && !/^(?:Merge|Revert) /.test(subject))
    .map((text) => ({ line: 0, rule: `commit subject over ${MAX_SUBJECT} characters`, text }));
}

export function markdownFindings(source: string): Finding[] {
  const findings: Finding[] = [];
  const lines = source.split("\n");
  const wrapped = wrapMarkdown(source).split("\n");
  const at = lines.findIndex((line, index) => line !== wrapped[index]);
  if (at !== -1 && !fits(lines[at] as string, WIDTH))
    findings.push({
      line: at + 1,
      rule: `line wider than ${WIDTH} columns: npm run format`,
      text: lines[at] as string,
    });
  let inFence = false;
  for (const [index, line] of lines.entries()) {
    if (/^\s*(?:```|~~~)/.test(line)) inFence = !inFence;
    const [word] = inFence ? [] : (plainer.exec(line.replace(/`[^`]*`/g, "")) ?? []);
    if (word !== undefined)
      findings.push({
        line: index + 1,
        rule: plainerRule(word),
        text: line.trim(),
        word,
      });
  }
  return findings;
}
