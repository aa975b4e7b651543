/**
 * A JSON document that preserves its formatting when parts of it are changed: objects keep the
 * order of their keys, and numbers and texts keep their notation. The layout is Go's.
 */
import { failure } from "../../util/errors.ts";
import { goJson } from "../../util/go/text.ts";
import { isObject, type JsonObject, parseJson, sorted } from "./json.ts";

export type JsonTree =
  | { readonly kind: "object"; readonly entries: readonly Entry[] }
  | { readonly kind: "list"; readonly items: readonly JsonTree[] }
  /** A number, a text or a word, as it is written in the document. */
  | { readonly kind: "plain"; readonly text: string };

interface Entry {
  readonly key: string;
  readonly value: JsonTree;
}

/** Maximum nesting depth. Each level adds two blanks to every line. */
const MAX_DEPTH = 64;
const emptyObject: JsonTree = { kind: "object", entries: [] };

/**
 * Parses a document.
 * @throws NodeError whose message is only the reason
 */
export function parseTree(text: string): JsonTree {
  parseJson(text);
  return new TreeReader(text).value(0);
}

/** Parses a text that is known to be JSON. */
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
    if (depth > MAX_DEPTH) throw failure("JSON_INVALID", { reason: `more than ${MAX_DEPTH} levels` });
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

/** Returns a value in the notation of Go. Keys keep their order. */
export function treeOf(value: unknown): JsonTree {
  if (Array.isArray(value)) return { kind: "list", items: value.map(treeOf) };
  if (!isObject(value)) return { kind: "plain", text: goJson(value) };
  return { kind: "object", entries: Object.entries(value).map(([key, inner]) => ({ key, value: treeOf(inner) })) };
}

/** Returns the plain value of a document. For duplicate keys, the last one counts. */
export function plainOf(tree: JsonTree): unknown {
  if (tree.kind === "list") return tree.items.map(plainOf);
  if (tree.kind === "plain") return JSON.parse(tree.text);
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, plainOf(value)]));
}

/** Prints a document with an indentation of two spaces and without a final newline. */
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

/**
 * Returns the document with a value at a path. Missing objects are created, and nulls on the path
 * become objects.
 */
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

/** Returns the key that a tree uses for a known key, which may differ in letter case. */
function spelling(tree: JsonTree, name: string, known: JsonObject): string {
  const keys = entriesOf(tree).map(({ key }) => key);
  if (keys.includes(name)) return name;
  const folded = name.toLowerCase();
  return keys.findLast((key) => key.toLowerCase() === folded && !Object.hasOwn(known, key)) ?? name;
}

const own = (object: JsonObject, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined);
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/**
 * Applies the change of known keys from `before` to `after` to a document. Everything else stays.
 */
export function applyChange(tree: JsonTree, before: JsonObject, after: JsonObject): JsonTree {
  let changed = tree;
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const old = own(before, name);
    const wanted = own(after, name);
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

/**
 * Returns a tree in which unchanged values keep the order and notation of the earlier document,
 * because clients do not see these.
 */
function asBefore(tree: JsonTree, before: JsonTree | undefined): JsonTree {
  if (before === undefined) return tree;
  if (isSame(sorted(plainOf(tree)), sorted(plainOf(before)))) return before;
  if (tree.kind !== "object" || before.kind !== "object") return tree;
  const entries = tree.entries.map(({ key, value }) => ({ key, value: asBefore(value, entryOf(before, key)) }));
  return { kind: "object", entries };
}

/** Copies unknown keys from another document. */
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
    const spelled = spelling(taken, name, known);
    const before = entryOf(taken, spelled);
    const after = takeUnknown(before ?? emptyObject, value, inner);
    if (after !== (before ?? emptyObject)) taken = putEntry(taken, spelled, () => after);
  }
  return taken;
}

/** Returns a tree with known values in their decoded form; missing keys stay missing. */
export function settle(tree: JsonTree, known: unknown): JsonTree {
  if (tree.kind === "object" && isObject(known)) {
    const entries = tree.entries.map(({ key, value }) =>
      Object.hasOwn(known, key) ? { key, value: settle(value, known[key]) } : { key, value },
    );
    return { kind: "object", entries };
  }
  return isSame(plainOf(tree), known) ? tree : treeOf(known);
}
