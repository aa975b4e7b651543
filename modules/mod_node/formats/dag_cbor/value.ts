/** Values of the "IPLD Data Model" in memory, and their CBOR encoding. */
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

type Compare = (one: string, other: string) => number;

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
const shorterFirst = (one: string, other: string): number => one.length - other.length || bytewise(one, other);

/**
 * Encodes canonical CBOR: 64-bit floats, keys sorted by length and then by bytes, everything else
 * as short as possible.
 */
export const encodeCbor = (value: Value): Uint8Array => atOnce(encodeCborSteps(value));

/** Same as `encodeCbor`, in steps. */
export const encodeCborSteps = (value: Value): Steps<Uint8Array> => written(value, shorterFirst);

/** Encodes CBOR without sorting keys: maps keep their order. */
export const encodePlainCborSteps = (value: Value): Steps<Uint8Array> => written(value, () => 0);

function* written(value: Value, compare: Compare): Steps<Uint8Array> {
  const writer = new Writer();
  yield* visitValueSteps(value, compare, {
    enter: (container) =>
      container instanceof Map ? writer.head(5, container.size) : writer.head(4, container.length),
    leave: () => {},
    item: () => {},
    key: (key) => writer.text(key),
    scalar: (scalar) => writer.scalar(scalar),
  });
  return writer.bytes;
}

class Writer {
  #buffer = Buffer.allocUnsafe(1024);
  #length = 0;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  scalar(value: Scalar): void {
    if (typeof value === "string") this.text(value);
    else if (typeof value === "number") this.#float(value);
    else if (typeof value === "bigint") value < 0n ? this.head(1, -1n - value) : this.head(0, value);
    else if (value instanceof Uint8Array) this.#string(2, value);
    else if (value === null || typeof value === "boolean") this.#byte(value === null ? 0xf6 : value ? 0xf5 : 0xf4);
    else this.#link(value);
  }

  text(text: string): void {
    this.head(3, text.length);
    const at = this.#reserve(text.length);
    this.#buffer.write(text, at, "latin1");
  }

  head(major: number, value: number | bigint): void {
    const first = major << 5;
    if (value < 24) {
      this.#byte(first | Number(value));
      return;
    }
    const power = value < 0x100 ? 0 : value < 0x10000 ? 1 : value < 0x100000000 ? 2 : 3;
    this.#byte(first | (24 + power));
    const size = 1 << power;
    const at = this.#reserve(size);
    if (power === 3) this.#buffer.writeBigUInt64BE(BigInt(value), at);
    else this.#buffer.writeUIntBE(Number(value), at, size);
  }

  #float(value: number): void {
    this.#byte(0xfb);
    const at = this.#reserve(8);
    this.#buffer.writeDoubleBE(value, at);
  }

  #link(cid: CID): void {
    this.head(6, 42);
    this.#string(2, Buffer.concat([Uint8Array.of(0), cid.bytes]));
  }

  #string(major: number, bytes: Uint8Array): void {
    this.head(major, bytes.length);
    const at = this.#reserve(bytes.length);
    this.#buffer.set(bytes, at);
  }

  #byte(byte: number): void {
    const at = this.#reserve(1);
    this.#buffer[at] = byte;
  }

  /** Reserves bytes and returns their offset. This may replace the buffer. */
  #reserve(size: number): number {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, at));
      this.#buffer = larger;
    }
    return at;
  }
}

/**
 * Returns the same value in canonical form; returns the input itself if it is already canonical.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export const canonicalCbor = (bytes: Uint8Array): Uint8Array => atOnce(canonicalCborSteps(bytes));

/** Same as `canonicalCbor`, in steps. */
export function* canonicalCborSteps(bytes: Uint8Array): Steps<Uint8Array> {
  const { length, canonical } = yield* visitCborSteps(bytes, {});
  return canonical ? bytes.subarray(0, length) : yield* encodeCborSteps(yield* decodeCborSteps(bytes));
}

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
