/** Shapes and options shared by several groups of commands. */
import { type Option, value } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";

const stringList = fields("stringList", { Strings: nullable(["string"]) });

export const lines = (items: readonly string[]): string => items.map((item) => `${item}\n`).join("");

/** Converts peer IDs and addresses to text. */
export const texts = (values: readonly { toString(): string }[]): readonly string[] => values.map(String);

type WireNames<T> = { readonly [K in keyof T as Capitalize<K & string>]: T[K] };

/**
 * Converts an object of the node to its RPC form by capitalizing the keys: `dataSent` becomes
 * `DataSent`.
 */
export const wireNames = <T extends object>(result: T): WireNames<T> =>
  Object.fromEntries(
    Object.entries(result).map(([name, each]) => [name.charAt(0).toUpperCase() + name.slice(1), each]),
  ) as WireNames<T>;

/** A list of strings, printed one per line. */
export const strings = {
  returns: value(stringList),
  text: ({ Strings }: ValueOf<typeof stringList>) => lines(Strings ?? []),
};

/** Returns null instead of an empty list, as Go encodes a nil slice. */
export const orNull = <T>(items: readonly T[]): readonly T[] | null => (items.length === 0 ? null : items);

const addedFields = { Name: "string", "Hash?": "string", "Bytes?": "int64", "Size?": "string" } as const;

/** An added file, or the progress of adding it. */
export const addedItem = fields("AddEvent", addedFields);

/** The item at the level 0.43, with the mode and time that the part of the body states. */
export const addedItemKubo043 = fields("AddEvent", {
  ...addedFields,
  "Mode?": "string",
  "Mtime?": "int64",
  "MtimeNsecs?": "int",
});

export const blockStat = fields("BlockStat", { Key: "string", Size: "int" });

export const refItem = fields("RefWrapper", { Ref: "string", Err: "string" });

export const resolvedPath = fields("ResolvedPath", { Path: "string" });

export const verbose = (help: string) => ({ type: "bool", aliases: ["v"], help }) as const satisfies Option;

export const human = { type: "bool", help: "Print human-readable sizes: 1K, 234M, 2G." } as const satisfies Option;

/** The encoding of identifiers of keys and names. */
export const nameBase = {
  type: "string",
  aliases: ["name-base"],
  default: "base36",
  help: "Encoding of identifiers: `b58mh`, or the multibase of a CID, such as `base36`, `k`, `base32` or `b`.",
} as const satisfies Option;

/** Options for the CIDs of newly written nodes. */
export const cidOptions = {
  "cid-version": { type: "int", aliases: ["cid-ver"], experimental: true, help: "Version of the CIDs to make." },
  hash: { type: "string", experimental: true, help: "Hash function to use; implies CIDs of version 1." },
} as const satisfies Record<string, Option>;
