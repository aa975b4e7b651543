/** How the reference lays out blocks as files, spread over folders by name: one for each CID, or, as from repo version 12 on, for each multihash. */
import { base32upper } from "multiformats/bases/base32";
import { CID } from "multiformats/cid";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { raw } from "../../../formats/cid/codecs.ts";
import { makeCid } from "../../../formats/cid/make.ts";
import { NodeError } from "../../../util/errors.ts";

export const defaultShardFunc = "/repo/flatfs/shard/v1/next-to-last/2";

/** Holds the shard function as text. */
export const shardingFile = "SHARDING";
export const readmeFile = "_README";
export const usageFile = "diskUsage.cache";
/** For files that are not complete yet. */
export const temporaryFolder = ".temp";
export const fileMode = 0o600;
export const folderMode = 0o755;

const extension = ".data";
/** Bytes of a file name, on common file systems. */
const MAX_NAME = 255;

/** Gives the folder for the name of a block, which has no extension. */
export type ShardFunc = (name: string) => string;

const filler = "_";
const makers: Readonly<Record<string, (length: number) => ShardFunc>> = {
  prefix: (length) => (name) => (name + filler.repeat(length)).slice(0, length),
  suffix: (length) => (name) => (filler.repeat(length) + name).slice(-length),
  "next-to-last": (length) => (name) => (filler.repeat(length + 1) + name).slice(-length - 1, -1),
};

/** @throws NodeError */
export function shardFunc(text: string): ShardFunc {
  const [, name = "", length = ""] = /^\/repo\/flatfs\/shard\/v1\/([a-z-]+)\/(\d{1,2})$/.exec(text) ?? [];
  const make = Object.hasOwn(makers, name) ? makers[name] : undefined;
  if (make === undefined || Number(length) === 0) throw new NodeError(`invalid shard identifier: ${text}`);
  return make(Number(length));
}

/** What the files of a store are named after. */
export type NamedAfter = "cid" | "multihash";

/** The name of a block without extension: its CID, or its multihash, in upper-case base32 without multibase prefix. */
export function nameOf(cid: CID, namedAfter: NamedAfter = "cid"): string {
  const name = base32upper.baseEncode(namedAfter === "cid" ? cid.bytes : cid.multihash.bytes);
  if (name.length + extension.length > MAX_NAME) throw new NodeError(`${cid} cannot be stored: it is too long`);
  return name;
}

export const fileOf = (name: string): string => name + extension;

/** The name of the block that a file holds; undefined for other files. */
export const nameIn = (file: string): string | undefined =>
  file.endsWith(extension) && !file.startsWith(".") ? file.slice(0, -extension.length) : undefined;

/** Undefined for a name that is none. After a multihash, which does not tell the codec, it is a raw CID of version 1. */
export function cidNamed(name: string, namedAfter: NamedAfter = "cid"): CID | undefined {
  try {
    const bytes = base32upper.baseDecode(name);
    return namedAfter === "cid" ? CID.decode(bytes) : makeCid(1, raw, decodeMultihash(bytes));
  } catch {
    return undefined;
  }
}

export const readme = `Blocks, each in a file of its own: <name>.data, where <name> is the CID of the
block in base32 (capital letters, no padding), without the letter B that names
the base. A file stands in the folder that the function in the file SHARDING
finds. With ".../next-to-last/2" that is named as the two characters before the
last of <name>:

    SC/AFKREIA22FLID5AJ2KU7URG47MDLROZIH6YF2KALU2PWEFPVI37YLKRSCA.data

Files of the folder .temp are not whole yet. diskUsage.cache says about how many
bytes all of it takes; it may be removed, and is calculated anew then.
`;
