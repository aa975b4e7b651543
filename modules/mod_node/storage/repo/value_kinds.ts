/**
 * The kinds of values in the configuration. A value is decoded to the form in which it is written
 * back. Errors have the texts of go-ipfs.
 */

import { parsePeerId } from "../../formats/peer_id.ts";
import { failure, type NodeError } from "../../util/errors.ts";
import { formatDuration, parseDuration } from "../../util/go/duration.ts";
import { quote } from "../../util/go/text.ts";
import { parseSize } from "../../util/size.ts";
import { isObject, type JsonObject } from "./json.ts";

/** The position of a value in the document, for error texts. */
export interface ValuePath {
  /** Go's name of the innermost struct. */
  readonly struct: string;
  /** The keys from that struct to the value. */
  readonly path: readonly string[];
}

export interface Kind<T = unknown> {
  /** The name on the reference page. */
  readonly name: string;
  /** Go's name of the type, for error texts. */
  readonly type: string;
  /** The value when the document has none. */
  readonly zero: T;
  /**
   * Decodes a value. `before` is the value that the same key already has in another spelling.
   * @throws NodeError
   */
  decode(value: unknown, at: ValuePath, before: T): T;
}

export type ValueOf<K> = K extends Kind<infer T> ? T : never;

const wordFor = (value: unknown): string =>
  Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;

export function mismatch(value: unknown, type: string, { struct, path }: ValuePath, word = wordFor(value)): NodeError {
  const into = path.length === 0 ? "value" : `struct field ${struct}.${path.join(".")}`;
  return failure("CONFIG_INVALID", { reason: `json: cannot unmarshal ${word} into Go ${into} of type ${type}` });
}

/** Declares a kind of plain value. Null leaves the previous value unchanged. */
function plain<T>(name: string, type: string, zero: T, accepts: (value: unknown) => value is T): Kind<T> {
  return {
    name,
    type,
    zero,
    decode(value, at, before) {
      if (value === null) return before;
      if (accepts(value)) return value;
      throw mismatch(value, type, at);
    },
  };
}

export const text = plain("text", "string", "", (value) => typeof value === "string");
export const bool = plain("bool", "bool", false, (value) => typeof value === "boolean");

const MAX_INT64 = 2 ** 63;

function integer(type: "int" | "int64"): Kind<number> {
  return {
    name: "int",
    type,
    zero: 0,
    decode(value, at, before) {
      if (value === null) return before;
      if (typeof value !== "number") throw mismatch(value, type, at);
      if (Number.isInteger(value) && value >= -MAX_INT64 && value < MAX_INT64) return value;
      throw mismatch(value, type, at, `number ${value}`);
    },
  };
}

export const int = integer("int");
export const int64 = integer("int64");

/** Durations and sizes are texts, which are parsed when they are used. */
export const durationText: Kind<string> = { ...text, name: "duration" };
export const sizeText: Kind<string> = { ...text, name: "size" };

export const anything: Kind<unknown> = { name: "any", type: "interface {}", zero: null, decode: (value) => value };

/** Declares a list. Null is a list that was never set. */
export function list<T>(of: Kind<T>): Kind<readonly T[] | null> {
  const type = `[]${of.type}`;
  return {
    name: `list of ${of.name}`,
    type,
    zero: null,
    decode(value, at) {
      if (value === null) return null;
      if (!Array.isArray(value)) throw mismatch(value, type, at);
      return value.map((each) => of.decode(each, at, of.zero));
    },
  };
}

/** Declares a map with arbitrary names. */
export function map<T>(of: Kind<T>, name = `map of ${of.name}`): Kind<Readonly<Record<string, T>> | null> {
  const type = `map[string]${of.type}`;
  return {
    name,
    type,
    zero: null,
    decode(value, at, before) {
      if (value === null) return null;
      if (!isObject(value)) throw mismatch(value, type, at);
      const decoded = Object.entries(value).map(([key, each]) => [key, of.decode(each, at, of.zero)] as const);
      return { ...before, ...Object.fromEntries(decoded) };
    },
  };
}

/** A text or a list of texts. An empty list is written as null, and a single entry as a text. */
export const strings: Kind<string | readonly string[] | null> = {
  name: "strings",
  type: "[]string",
  zero: null,
  decode(value, at) {
    const many = Array.isArray(value)
      ? value.map((each) => text.decode(each, at, ""))
      : [text.decode(value, at, "")].filter((each) => each !== "");
    return many.length > 1 ? many : (many[0] ?? null);
  },
};

/** True, false, or null for the default of the node. */
export const flag: Kind<boolean | null> = {
  name: "flag",
  type: "config.Flag",
  zero: null,
  decode(value) {
    if (value === null || typeof value === "boolean") return value;
    const shown = quote(JSON.stringify(value));
    throw failure("CONFIG_INVALID", {
      reason: `failed to unmarshal ${shown} into a flag: must be null/undefined, true, or false`,
    });
  },
};

/** A whole number, or null for the default of the node. */
export const optionalInt: Kind<number | null> = {
  name: "number",
  type: "config.OptionalInteger",
  zero: null,
  decode: (value, at) => (value === null ? null : int64.decode(value, at, 0)),
};

export const optionalText: Kind<string | null> = {
  name: "text",
  type: "config.OptionalString",
  zero: null,
  decode(value, at) {
    if (value === null || typeof value === "string") return value;
    throw mismatch(value, optionalText.type, at);
  },
};

/** A whole number of at least 0, or null for the default of the node. */
export const count: Kind<number | null> = {
  name: "number",
  type: "config.OptionalInteger",
  zero: null,
  decode(value, at) {
    if (value === null) return null;
    const number = int64.decode(value, at, 0);
    if (number < 0) throw failure("CONFIG_INVALID", { reason: `a number of at least 0 is expected: ${number} < 0` });
    return number;
  },
};

/** A priority: lower numbers come first, false disables, null is the default of the node. */
export const priority: Kind<number | false | null> = {
  name: "priority",
  type: "config.Priority",
  zero: null,
  decode(value, at) {
    if (value === null || value === false) return value;
    if (value === true) throw failure("CONFIG_INVALID", { reason: "'true' is not a valid priority" });
    const number = int64.decode(value, at, 0);
    if (number <= 0) throw failure("CONFIG_INVALID", { reason: `priority must be positive: ${number} <= 0` });
    return number;
  },
};

const modes: ReadonlySet<string> = new Set(["", "enabled", "disabled"]);

export const natMode: Kind<string> = {
  name: "text",
  type: "config.AutoNATServiceMode",
  zero: "",
  decode(value, at, before) {
    if (value === null) return before;
    if (typeof value !== "string") throw mismatch(value, natMode.type, at);
    if (!modes.has(value)) throw failure("CONFIG_INVALID", { reason: `unknown autonat mode: ${value}` });
    return value;
  },
};

export const duration: Kind<string> = {
  name: "duration",
  type: "config.Duration",
  zero: "",
  decode(value, at, before) {
    if (value === null) return before;
    if (typeof value !== "string") throw mismatch(value, duration.type, at);
    const milliseconds = parseDuration(value);
    return milliseconds === 0 ? "" : formatDuration(milliseconds);
  },
};

/** A duration, or null for the default of the node. */
export const optionalDuration: Kind<string | null> = {
  name: "duration",
  type: "config.OptionalDuration",
  zero: null,
  decode(value, at) {
    if (value === null) return null;
    if (typeof value !== "string") throw mismatch(value, optionalDuration.type, at);
    parseDuration(value);
    return value;
  },
};

/** A size, or null for the default of the node. */
export const optionalSize: Kind<string | null> = {
  name: "size",
  type: "config.OptionalBytes",
  zero: null,
  decode(value, at) {
    if (value === null) return null;
    if (typeof value !== "string") throw mismatch(value, optionalSize.type, at);
    parseSize(value);
    return value;
  },
};

export interface FieldKind {
  readonly kind: Kind;
  /** Whether the field is left out while it has its zero value. */
  readonly optional?: boolean;
}

/**
 * Declares an object with known keys, which are written in their order. Reading ignores letter case
 * and drops unknown keys.
 */
export function struct<T extends JsonObject | null>(
  name: string,
  fields: Readonly<Record<string, FieldKind>>,
  { nullable = false, type = `config.${name}` }: { nullable?: boolean; type?: string } = {},
): Kind<T> {
  const byFold = new Map(Object.keys(fields).map((key) => [key.toLowerCase(), key]));
  const empty = Object.fromEntries(Object.entries(fields).map(([key, { kind }]) => [key, kind.zero]));
  const isUnset = (key: string, value: unknown) => fields[key]?.optional === true && value === fields[key].kind.zero;
  const trim = (whole: JsonObject) =>
    Object.fromEntries(Object.entries(whole).filter(([key, value]) => !isUnset(key, value)));
  const zero = nullable ? null : trim(empty);
  return {
    name: "object",
    type,
    zero: zero as T,
    decode(value, at, before) {
      if (value === null) return nullable ? (null as T) : before;
      if (!isObject(value)) throw mismatch(value, type, at);
      const whole: Record<string, unknown> = { ...empty, ...before };
      for (const given of Object.keys(value).sort()) {
        const key = byFold.get(given.toLowerCase());
        if (key === undefined) continue;
        const { kind } = fields[key] as FieldKind;
        whole[key] = kind.decode(value[given], { struct: name, path: [...at.path, key] }, whole[key]);
      }
      const trimmed = trim(whole);
      // Returns the zero value itself for an empty object, so that optional fields are recognized
      // by identity.
      return (zero !== null && Object.keys(trimmed).length === 0 ? zero : trimmed) as T;
    },
  };
}

/** A peer and its addresses. */
export interface PeerAddresses {
  readonly ID: string;
  readonly Addrs: readonly string[];
}

export const peerAddresses: Kind<PeerAddresses> = {
  name: "`{ID, Addrs}`",
  type: "peer.AddrInfo",
  zero: { ID: "", Addrs: [] },
  decode(value, at) {
    if (!isObject(value)) throw mismatch(value, peerAddresses.type, at);
    const field = (name: string) => Object.entries(value).find(([key]) => key.toLowerCase() === name)?.[1] ?? null;
    const id = text.decode(field("id"), at, "");
    const addresses = list(text).decode(field("addrs"), at, null) ?? [];
    for (const address of addresses) {
      if (address.startsWith("/")) continue;
      throw failure("CONFIG_INVALID", { reason: `failed to parse multiaddr ${quote(address)}: must begin with /` });
    }
    return { ID: parsePeerId(id).toString(), Addrs: addresses };
  },
};
