/**
 * A JSON document that is changed in places and otherwise written as it was read: objects keep the order of their keys,
 * numbers and texts the form in which they stand. The layout is Go's.
 */
import { NodeError } from "../../util/errors.ts";
import { goJson } from "../../util/go/text.ts";
import { isObject, type JsonObject, parseJson, sorted } from "./json.ts";

export type JsonTree =
  | { readonly kind: "object"; readonly entries: readonly Entry[] }
  | { readonly kind: "list"; readonly items: readonly JsonTree[] }
  /** A number, a text, a word: as it is written. */
  | { readonly kind: "plain"; readonly text: string };

interface Entry {
  readonly key: string;
  readonly value: JsonTree;
}

/** Levels of nesting: each is two blanks more in front of every line. */
const MAX_DEPTH = 64;
const emptyObject: JsonTree = { kind: "object", entries: [] };

/** @throws NodeError whose message is the bare reason */
export function parseTree(text: string): JsonTree {
  parseJson(text);
  return new TreeReader(text).value(0);
}

/** Reads what is known to be JSON. */
class TreeReader {
  readonly #tokens: RegExpStringIterator<RegExpExecArray>;
  #token = "";

  constructor(text: string) {
    this.#tokens = text.matchAll(/[{}[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+/g);
    this.#next();
  }

  #next(): string {
    const before = this.#token;
    this.#token = this.#tokens.next().value?.[0] ?? "";
    return before;
  }

  value(depth: number): JsonTree {
    if (depth > MAX_DEPTH) throw new NodeError(`more than ${MAX_DEPTH} levels`);
    const token = this.#next();
    if (token === "{") return { kind: "object", entries: this.#until("}", () => this.#entry(depth)) };
    if (token === "[") return { kind: "list", items: this.#until("]", () => this.value(depth + 1)) };
    return { kind: "plain", text: token };
  }

  #entry(depth: number): Entry {
    const key = JSON.parse(this.#next()) as string;
    this.#next();
    return { key, value: this.value(depth + 1) };
  }

  #until<T>(end: string, read: () => T): T[] {
    const found: T[] = [];
    while (this.#token !== end) {
      found.push(read());
      if (this.#token === ",") this.#next();
    }
    this.#next();
    return found;
  }
}

/** A value in the form in which Go writes it; keys stay in their order. */
export function treeOf(value: unknown): JsonTree {
  if (Array.isArray(value)) return { kind: "list", items: value.map(treeOf) };
  if (!isObject(value)) return { kind: "plain", text: goJson(value) };
  return { kind: "object", entries: Object.entries(value).map(([key, inner]) => ({ key, value: treeOf(inner) })) };
}

/** Of keys that stand there several times, the last counts. */
export function plainOf(tree: JsonTree): unknown {
  if (tree.kind === "list") return tree.items.map(plainOf);
  if (tree.kind === "plain") return JSON.parse(tree.text);
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, plainOf(value)]));
}

/** Indented by two spaces, without a newline at the end. */
export function printTree(tree: JsonTree, indent = ""): string {
  if (tree.kind === "plain") return tree.text;
  const deeper = `${indent}  `;
  const parts =
    tree.kind === "list"
      ? tree.items.map((item) => printTree(item, deeper))
      : tree.entries.map(({ key, value }) => `${goJson(key)}: ${printTree(value, deeper)}`);
  const [open, close] = tree.kind === "list" ? "[]" : "{}";
  if (parts.length === 0) return `${open}${close}`;
  return `${open}\n${parts.map((part) => deeper + part).join(",\n")}\n${indent}${close}`;
}

/** The same document with a value at that place; missing objects are made, and nulls on the way become objects. */
export function setIn(tree: JsonTree, names: readonly string[], value: JsonTree): JsonTree {
  const [name, ...below] = names;
  if (name === undefined) return value;
  return putEntry(tree, name, (before) => setIn(before ?? emptyObject, below, value));
}

function entriesOf(tree: JsonTree): readonly Entry[] {
  return tree.kind === "object" ? tree.entries : [];
}

function entryOf(tree: JsonTree, name: string): JsonTree | undefined {
  return entriesOf(tree).findLast(({ key }) => key === name)?.value;
}

function putEntry(tree: JsonTree, name: string, make: (before: JsonTree | undefined) => JsonTree): JsonTree {
  const entries = entriesOf(tree);
  const at = entries.findLastIndex(({ key }) => key === name);
  const entry = { key: name, value: make(entries[at]?.value) };
  return { kind: "object", entries: at < 0 ? [...entries, entry] : entries.with(at, entry) };
}

/** The key under which a tree has a known key, which it may spell in another case. */
function spelling(tree: JsonTree, name: string, known: JsonObject): string {
  const keys = entriesOf(tree).map(({ key }) => key);
  if (keys.includes(name)) return name;
  const folded = name.toLowerCase();
  return keys.findLast((key) => key.toLowerCase() === folded && !Object.hasOwn(known, key)) ?? name;
}

const own = (object: JsonObject, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined);
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The document after a change of its known keys, given as they were and as they are to be. All else stays. */
export function applyChange(tree: JsonTree, before: JsonObject, after: JsonObject): JsonTree {
  let changed = tree;
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, wanted] = [own(before, name), own(after, name)];
    if (isSame(old, wanted)) continue;
    const key = spelling(changed, name, { ...before, ...after });
    changed =
      wanted === undefined
        ? { kind: "object", entries: entriesOf(changed).filter((entry) => entry.key !== key) }
        : putEntry(changed, key, (found) =>
            isObject(old) && isObject(wanted) && found?.kind !== "plain"
              ? applyChange(found ?? emptyObject, old, wanted)
              : treeOf(wanted),
          );
  }
  return changed;
}

/** What is the same in an earlier document keeps its order and form, which clients do not see. */
function asBefore(tree: JsonTree, before: JsonTree | undefined): JsonTree {
  if (before === undefined) return tree;
  if (isSame(sorted(plainOf(tree)), sorted(plainOf(before)))) return before;
  if (tree.kind !== "object" || before.kind !== "object") return tree;
  const entries = tree.entries.map(({ key, value }) => ({ key, value: asBefore(value, entryOf(before, key)) }));
  return { kind: "object", entries };
}

/** Takes over from another document what is not among the known keys. */
export function takeUnknown(tree: JsonTree, from: JsonTree, known: JsonObject): JsonTree {
  const byFold = new Map(Object.keys(known).map((key) => [key.toLowerCase(), key]));
  let taken = tree;
  for (const { key, value } of entriesOf(from)) {
    const name = Object.hasOwn(known, key) ? key : byFold.get(key.toLowerCase());
    if (name === undefined) {
      taken = putEntry(taken, key, (before) => asBefore(value, before));
      continue;
    }
    const inner = known[name];
    if (!isObject(inner) || value.kind !== "object") continue;
    const place = spelling(taken, name, known);
    const before = entryOf(taken, place);
    const after = takeUnknown(before ?? emptyObject, value, inner);
    if (after !== (before ?? emptyObject)) taken = putEntry(taken, place, () => after);
  }
  return taken;
}

/** Known values in the form in which they are kept; what is not there stays away. */
export function settle(tree: JsonTree, known: unknown): JsonTree {
  if (tree.kind === "object" && isObject(known)) {
    const entries = tree.entries.map(({ key, value }) =>
      Object.hasOwn(known, key) ? { key, value: settle(value, known[key]) } : { key, value },
    );
    return { kind: "object", entries };
  }
  return isSame(plainOf(tree), known) ? tree : treeOf(known);
}
