/** Values of the "IPLD Data Model" in memory, as CBOR is decoded to them. */
import type { CID } from "multiformats/cid";
import { atOnce, ITEMS_PER_STEP, type Steps, sortedSteps } from "../../util/async/steps.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import type { CborReader } from "./reader.ts";
import { binary, type CborRules, type CborScalar, type CborVisitor, visitCborSteps } from "./visit.ts";

/**
 * A number is a float, a bigint is an integer. Texts and keys are stored as their UTF-8 bytes, one
 * character per byte. This preserves invalid UTF-8, and lets keys compare as their bytes do.
 */
export type Value = null | boolean | number | bigint | string | Uint8Array | CID | Value[] | ValueMap;
export type ValueMap = Map<string, Value>;
export type Scalar = Exclude<Value, Value[] | ValueMap>;

/** Maximum number of values in a node. A value takes many times its encoded size in memory. */
const MAX_VALUES = 4_000_000;

interface Open {
  readonly container: Value[] | ValueMap;
  /** The key of the value in the map that contains it. */
  readonly key: string;
}

/** Builds a value from its parts and counts them. */
export class ValueBuilder {
  readonly #open: Open[] = [];
  #key = "";
  #count = 0;
  value: Value = null;

  /** Whether the open map already has this key. */
  has(key: string): boolean {
    const map = this.#open.at(-1)?.container;
    return map instanceof Map && map.has(key);
  }

  key(key: string): void {
    this.#key = key;
  }

  add(value: Value): void {
    this.#count += 1;
    if (this.#count > MAX_VALUES)
      throw failure("CBOR_INVALID", { reason: `a node of more than ${MAX_VALUES} values is too large` });
    const parent = this.#open.at(-1)?.container;
    if (parent === undefined) this.value = value;
    else if (parent instanceof Map) parent.set(this.#key, value);
    else parent.push(value);
  }

  enter(kind: "map" | "list"): void {
    const container: Value[] | ValueMap = kind === "map" ? new Map() : [];
    this.add(container);
    this.#open.push({ container, key: this.#key });
  }

  /** Closes the innermost container. If `value` is given, its result replaces the container. */
  leave(value?: (complete: Value[] | ValueMap) => Value): void {
    const { container, key } = this.#open.pop() as Open;
    if (value === undefined) return;
    const parent = this.#open.at(-1)?.container;
    const stand = value(container);
    if (parent === undefined) this.value = stand;
    else if (parent instanceof Map) parent.set(key, stand);
    else parent[parent.length - 1] = stand;
  }
}

/** Decodes as leniently as go-ipfs 0.9. @throws NodeError with the error text of go-ipfs */
export const decodeCbor = (bytes: Uint8Array): Value => atOnce(decodeCborSteps(bytes));

/** Same as `decodeCbor`, in steps. */
export function* decodeCborSteps(bytes: Uint8Array, rules?: CborRules): Steps<Value> {
  const builder = new ValueBuilder();
  const visitor: CborVisitor = {
    enter: (kind) => builder.enter(kind),
    leave: () => builder.leave(),
    key: (text) => builder.key(binary(text)),
    scalar: (token, reader) => builder.add(scalarOf(token, reader)),
    link: (cid) => builder.add(cid),
  };
  yield* visitCborSteps(bytes, visitor, rules);
  return builder.value;
}

function scalarOf(token: CborScalar, reader: CborReader): Scalar {
  switch (token) {
    case "null":
      return null;
    case "true":
    case "false":
      return token === "true";
    case "int":
      return BigInt(reader.int);
    case "float":
      return reader.float;
    case "text":
      return binary(reader.bytes);
    case "bytes":
      return reader.bytes;
  }
}

/** Receives the parts of a value, in order. */
export interface ValueVisitor {
  enter(container: Value[] | ValueMap): void;
  leave(container: Value[] | ValueMap): void;
  /** Called before every item of a list and every key of a map; `at` is the index. */
  item(at: number): void;
  key(key: string): void;
  scalar(value: Scalar): void;
}

interface Frame {
  readonly container: Value[] | ValueMap;
  /** The sorted keys of a map; undefined for a list. */
  readonly keys: readonly string[] | undefined;
  at: number;
}

export type Compare = (one: string, other: string) => number;

/**
 * Visits a value, with the keys of maps in the order of `compare`. The function is iterative,
 * because values may be deeply nested.
 */
export function* visitValueSteps(root: Value, compare: Compare, visitor: ValueVisitor): Steps<void> {
  const frames: Frame[] = [];
  /**
   * Announces a value to the visitor. Returns it if it is a map, whose keys must be sorted first.
   */
  const begin = (value: Value): ValueMap | undefined => {
    if (!(value instanceof Map) && !Array.isArray(value)) {
      visitor.scalar(value);
      return undefined;
    }
    visitor.enter(value);
    if (value instanceof Map) return value;
    frames.push({ container: value, keys: undefined, at: 0 });
    return undefined;
  };
  const first = begin(root);
  if (first !== undefined) frames.push({ container: first, keys: yield* sortedKeys(first, compare), at: 0 });
  let items = 0;
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    items += 1;
    if (items % ITEMS_PER_STEP === 0) yield;
    const { container, keys, at } = frame;
    if (at === (keys ?? (container as Value[])).length) {
      frames.pop();
      visitor.leave(container);
      continue;
    }
    visitor.item(at);
    frame.at += 1;
    const key = keys?.[at];
    if (key !== undefined) visitor.key(key);
    const map = begin(
      key === undefined ? ((container as Value[])[at] as Value) : ((container as ValueMap).get(key) as Value),
    );
    if (map !== undefined) frames.push({ container: map, keys: yield* sortedKeys(map, compare), at: 0 });
  }
}

const sortedKeys = (map: ValueMap, compare: Compare): Steps<string[]> => sortedSteps([...map.keys()], compare);

/** Compares keys by their bytes. */
export const bytewise = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/**
 * Returns the CIDs that a value links to, in order.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export const cborLinks = (bytes: Uint8Array, rules?: CborRules): CID[] => atOnce(cborLinksSteps(bytes, rules));

/** Same as `cborLinks`, in steps. */
export function* cborLinksSteps(bytes: Uint8Array, rules?: CborRules): Steps<CID[]> {
  const found: CID[] = [];
  yield* visitCborSteps(bytes, { link: (cid) => found.push(cid) }, rules);
  return found;
}

const noMember = (message: string, later: string) => new NodeError("NO_LINK", message, { details: { later } });

/** The error text of Kubo 0.43 for a lookup in a value that is neither a map nor a list. */
export const wrongKind = (kind: string): string =>
  `func called on wrong kind: "LookupBySegment" called on a ${kind} node (kind: ${kind}), but only makes sense on map or list`;

function kindOf(value: Scalar): string {
  if (value === null) return "null";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float";
  if (typeof value === "boolean") return "bool";
  return value instanceof Uint8Array ? "bytes" : typeof value === "string" ? "string" : "link";
}

/**
 * Returns the member of a value with this key or index.
 *
 * @throws NodeError with the error text of go-ipfs if it does not exist
 */
export function member(value: Value, name: string): Value {
  const notFound = `key not found: ${quote(name)}`;
  if (Array.isArray(value)) {
    if (!/^[+-]?\d+$/.test(name)) {
      const reason = `parsing "${name}": invalid syntax`;
      const later = `invalid segment for lookup on a list: ${quote(name)}: strconv.ParseInt: ${reason}`;
      throw noMember(`strconv.Atoi: ${reason}`, later);
    }
    const found = value[Number(name)];
    if (found === undefined) throw noMember("array index out of range", notFound);
    return found;
  }
  if (!(value instanceof Map)) {
    throw noMember("tried to resolve through object that had no links", wrongKind(kindOf(value)));
  }
  const found = value.get(binary(Buffer.from(name)));
  if (found === undefined) throw noMember("no such link found", notFound);
  return found;
}
