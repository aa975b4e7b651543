/** Reads whole CBOR values. Keys must be texts and unique. */
import type { CID } from "multiformats/cid";
import { ITEMS_PER_STEP, type Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { castCid } from "../cid/text.ts";
import { CborReader, type CborToken } from "./reader.ts";

export type CborScalar = Exclude<CborToken, "map" | "list" | "close">;

/** Receives the parts of a value. Every method is optional. */
export interface CborVisitor {
  enter?(kind: "map" | "list"): void;
  leave?(): void;
  key?(text: Uint8Array): void;
  /** Fields of `reader` hold the content of the token. */
  scalar?(token: CborScalar, reader: CborReader): void;
  link?(cid: CID): void;
}

export interface VisitedCbor {
  /** Length of the value in bytes. */
  readonly length: number;
  /** Whether the value is encoded as go-ipfs would encode it. */
  readonly canonical: boolean;
}

const linkTag = 42;

/**
 * Which CBOR is accepted. `lenient` is the CBOR of go-ipfs 0.9: any encoding, and bytes after the
 * value are ignored. `strict` is the dag-cbor of Kubo 0.43, which ignores tags of values other than
 * bytes. `strict without links` is its codec `cbor`.
 */
export type CborRules = "lenient" | "strict" | "strict without links";

/** @throws NodeError with the error text of go-ipfs */
export function* visitCborSteps(
  bytes: Uint8Array,
  visitor: CborVisitor,
  rules: CborRules = "lenient",
): Steps<VisitedCbor> {
  const strict = rules !== "lenient";
  const reader = new CborReader(bytes, { strict });
  const open: (Keys | undefined)[] = [];
  let canonical = true;
  let items = 0;
  do {
    items += 1;
    if (items % ITEMS_PER_STEP === 0) yield;
    const keys = reader.atKey ? open.at(-1) : undefined;
    const token = reader.next();
    canonical &&= reader.canonical;
    if (token === "close") {
      canonical &&= open.pop()?.ordered !== false;
      visitor.leave?.();
    } else if (keys !== undefined) {
      canonical &&= reader.tag === undefined;
      keys.add(keyOf(token, reader));
      visitor.key?.(reader.bytes);
    } else if (reader.tag !== undefined && (!strict || token === "bytes")) {
      if (strict && (reader.tag !== linkTag || rules === "strict without links")) {
        throw failure("CBOR_INVALID", { reason: `unhandled cbor tag ${reader.tag}` });
      }
      const cid = linkOf(token, reader);
      visitor.link?.(cid);
    } else if (token === "map" || token === "list") {
      open.push(token === "map" ? new Keys() : undefined);
      visitor.enter?.(token);
    } else {
      visitor.scalar?.(token, reader);
    }
  } while (reader.depth > 0);
  if (strict && reader.at < bytes.length)
    throw failure("CBOR_INVALID", { reason: "unexpected content after end of cbor object" });
  return { length: reader.at, canonical };
}

/**
 * The keys of a map that were read so far. Keys that come in order only need a comparison with the
 * previous key; from the first key out of order on, they go into a set.
 */
class Keys {
  readonly #sorted: Uint8Array[] = [];
  #rest: Set<string> | undefined;

  get ordered(): boolean {
    return this.#rest === undefined;
  }

  add(key: Uint8Array): void {
    const last = this.#sorted.at(-1);
    if (this.#rest === undefined && (last === undefined || compareKeys(last, key) < 0)) {
      this.#sorted.push(key);
      return;
    }
    this.#rest ??= new Set();
    const text = binary(key);
    if (this.#rest.has(text) || this.#isAmongSorted(key)) {
      throw failure("CBOR_INVALID", { reason: `repeated key ${quote(Buffer.from(key).toString())}` });
    }
    this.#rest.add(text);
  }

  #isAmongSorted(key: Uint8Array): boolean {
    for (let from = 0, to = this.#sorted.length; from < to; ) {
      const middle = (from + to) >> 1;
      const order = compareKeys(this.#sorted[middle] as Uint8Array, key);
      if (order === 0) return true;
      if (order < 0) from = middle + 1;
      else to = middle;
    }
    return false;
  }
}

/** Converts bytes to text, one character per byte. */
export const binary = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");

/** Compares keys in canonical order: shorter keys first. */
export const compareKeys = (one: Uint8Array, other: Uint8Array): number =>
  one.length - other.length || Buffer.compare(one, other);

function keyOf(token: CborToken, reader: CborReader): Uint8Array {
  if (token === "text") return reader.bytes;
  if (token === "map" || token === "list") {
    throw failure("CBOR_INVALID", { reason: `unexpected ${token === "map" ? "map" : "arr"}Open; expected map key` });
  }
  throw failure("CBOR_INVALID", {
    reason: `unexpected token ${tokenText(token, reader)}; expected key string or end of map`,
  });
}

function linkOf(token: CborToken, reader: CborReader): CID {
  if (reader.tag !== linkTag)
    throw failure("CBOR_INVALID", { reason: `missing an unmarshaller for tag ${reader.tag}` });
  if (token !== "bytes" && token !== "null") {
    throw failure("CBOR_INVALID", {
      reason: `unmarshal error: cannot assign ${tokenText(token, reader)} to slice field`,
    });
  }
  const bytes = token === "null" ? new Uint8Array() : reader.bytes;
  return linkCid(bytes);
}

/** Decodes the CID of a link. @throws NodeError with the error text of go-ipfs */
export function linkCid(bytes: Uint8Array): CID {
  if (bytes.length === 0) throw failure("CBOR_INVALID", { reason: "link value was empty" });
  if (bytes[0] !== 0) throw failure("CBOR_INVALID", { reason: "invalid multibase on IPLD link" });
  try {
    return castCid(bytes.subarray(1));
  } catch (error) {
    throw failure("CBOR_INVALID", { reason: "link value should have been bytes" }, error);
  }
}

/** Returns a token as refmt prints it in errors. */
export function tokenText(token: CborToken, { tag, int, float, bytes }: CborReader): string {
  const inner = {
    map: "{",
    list: "[",
    close: "}",
    null: "0",
    true: "b:true",
    false: "b:false",
    int: `${int < 0 ? "i" : "u"}:${int}`,
    float: `f:${float}`,
    text: `s:${quote(Buffer.from(bytes).toString())}`,
    bytes: `x:[${[...bytes.subarray(0, 64)].join(" ")}]`,
  }[token];
  return `${tag === undefined ? "" : `_${tag}:`}<${inner}>`;
}
