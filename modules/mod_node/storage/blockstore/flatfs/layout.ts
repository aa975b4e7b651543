/**
 * The file layout of go-ipfs: blocks are spread over folders by name, with one file for each CID
 * or, since repo version 12, for each multihash.
 */
import { base32upper } from "multiformats/bases/base32";
import { CID } from "multiformats/cid";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { raw } from "../../../formats/cid/codecs.ts";
import { makeCid } from "../../../formats/cid/make.ts";
import { failure } from "../../../util/errors.ts";

export const defaultShardFunc = "/repo/flatfs/shard/v1/next-to-last/2";

/** The file with the shard function. */
export const shardingFile = "SHARDING";
export const readmeFile = "_README";
export const usageFile = "diskUsage.cache";
/** Folder of incomplete files. */
export const temporaryFolder = ".temp";
export const fileMode = 0o600;
export const folderMode = 0o755;

const extension = ".data";
/** Maximum bytes of a file name on common file systems. */
const MAX_NAME = 255;

/** Returns the folder for the name of a block without extension. */
export type ShardFunc = (name: string) => string;

const filler = "_";
const makers: Readonly<Record<string, (length: number) => ShardFunc>> = {
  prefix: (length) => (name) => (name + filler.repeat(length)).slice(0, length),
  suffix: (length) => (name) => (filler.repeat(length) + name).slice(-length),
  "next-to-last": (length) => (name) => (filler.repeat(length + 1) + name).slice(-length - 1, -1),
};

/**
 * Parses a shard function.
 * @throws NodeError
 */
export function shardFunc(text: string): ShardFunc {
  const [, name = "", length = ""] = /^\/repo\/flatfs\/shard\/v1\/([a-z-]+)\/(\d{1,2})$/.exec(text) ?? [];
  const make = Object.hasOwn(makers, name) ? makers[name] : undefined;
  if (make === undefined || Number(length) === 0)
    throw failure("DATASTORE_INVALID", { reason: `invalid shard identifier: ${text}` });
  return make(Number(length));
}

/** Whether the files of a store are named after CIDs or multihashes. */
export type NamedAfter = "cid" | "multihash";

/**
 * Returns the file name of a block without extension: its CID or multihash in upper-case base32
 * without multibase prefix.
 */
export function nameOf(cid: CID, namedAfter: NamedAfter = "cid"): string {
  const name = base32upper.baseEncode(namedAfter === "cid" ? cid.bytes : cid.multihash.bytes);
  if (name.length + extension.length > MAX_NAME)
    throw failure("BLOCK_NOT_STORABLE", { cid: String(cid), reason: "it is too long" });
  return name;
}

export const fileOf = (name: string): string => name + extension;

/** Returns the name of the block in a file; undefined for other files. */
export const nameIn = (file: string): string | undefined =>
  file.endsWith(extension) && !file.startsWith(".") ? file.slice(0, -extension.length) : undefined;

/**
 * Returns the CID for a name; undefined for an invalid name. A multihash does not determine the
 * codec, so its CID is a raw CID of version 1.
 */
export function cidNamed(name: string, namedAfter: NamedAfter = "cid"): CID | undefined {
  try {
    const bytes = base32upper.baseDecode(name);
    return namedAfter === "cid" ? CID.decode(bytes) : makeCid(1, raw, decodeMultihash(bytes));
  } catch {
    return undefined;
  }
}

export const readme = `Blocks, each in its own file <name>.data, where <name> is the CID of the block
in upper-case base32, without padding and without the multibase prefix B. The
function in the file SHARDING determines the folder of a file. With
".../next-to-last/2", it is named after the two characters before the last one
of <name>:

    SC/AFKREIA22FLID5AJ2KU7URG47MDLROZIH6YF2KALU2PWEFPVI37YLKRSCA.data

Files in the folder .temp are incomplete. diskUsage.cache contains the
approximate number of bytes of all files. It may be removed, and is then
computed again.
`;
