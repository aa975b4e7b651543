/** A line-by-line diff of two JSON documents in terminal colours, as go-ipfs prints it. */
import { isDeepStrictEqual } from "node:util";
import { goJson } from "modhost/node";

type JsonObject = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const colours = { changed: "\x1b[33m", removed: "\x1b[31m", added: "\x1b[32m" };
const plain = "\x1b[0m";
const step = "    ";

/** Returns the diff, with the keys of both documents in sorted order. */
export function jsonDiff(before: JsonObject, after: JsonObject): string {
  return block(members(before, after), "");
}

interface Member {
  /** Name of the member; empty for list items. */
  readonly key: string;
  readonly before: unknown;
  readonly after: unknown;
}

function members(before: JsonObject, after: JsonObject): Member[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return keys.map((key) => ({ key, before: before[key], after: after[key] }));
}

function elements(before: readonly unknown[], after: readonly unknown[]): Member[] {
  const length = Math.max(before.length, after.length);
  return Array.from({ length }, (_, at) => ({ key: "", before: before[at], after: after[at] }));
}

function block(all: readonly Member[], prefix: string): string {
  const lines = all.map((member, at) => `\n${lineOf(member, prefix, at < all.length - 1 ? "," : "")}`);
  return `{${lines.join("")}\n${prefix}}`;
}

function lineOf({ key, before, after }: Member, prefix: string, comma: string): string {
  const line = (mark: string, value: unknown) => `${prefix}${mark}"${key}": ${goJson(value)}${comma}`;
  const inColour = (colour: keyof typeof colours, text: string) => `${colours[colour]}${text}${plain}`;
  if (before === undefined) return inColour("added", line("<< ", after));
  if (after === undefined) return inColour("removed", line(">> ", before));
  if (isDeepStrictEqual(before, after)) return line("", before);
  const inner = within(before, after);
  if (inner !== undefined) return `${prefix}"${key}": ${block(inner, prefix + step)}${comma}`;
  return inColour("changed", `${line("<> ", before)}\n${line("** ", after)}`);
}

function within(before: unknown, after: unknown): Member[] | undefined {
  if (isObject(before) && isObject(after)) return members(before, after);
  return Array.isArray(before) && Array.isArray(after) ? elements(before, after) : undefined;
}
