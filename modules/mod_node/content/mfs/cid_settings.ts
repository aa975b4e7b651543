/** The form of CIDs in MFS: from options, or from an existing node. */
import type { CID } from "multiformats/cid";
import type { Names } from "../../formats/cid/codecs.ts";
import { hashCoded, hashUnavailable } from "../../formats/cid/hashes.ts";
import { failure } from "../../util/errors.ts";
import { hashOf } from "../adder/settings.ts";
import type { CidSettings } from "../unixfs/build.ts";

/** Undefined stands for an option that was not given. */
export interface CidOptions {
  readonly version?: number | undefined;
  /** Name of a hash function, in any letter case. It changes version 0 to 1. */
  readonly hash?: string | undefined;
  readonly names?: Names;
}

/**
 * Returns undefined if no option was given. @throws NodeError for an unknown version or an unusable
 * hash function
 */
export function cidSettings(options: CidOptions): CidSettings | undefined {
  const { version: given = 0, hash: name } = options;
  if (options.version === undefined && name === undefined) return undefined;
  const version = name !== undefined && given === 0 ? 1 : given;
  if (version !== 0 && version !== 1) throw failure("OPTION_INVALID", { reason: `unknown CID version: ${version}` });
  const hash = hashOf(name, options.names);
  if (!hash.allowed) throw failure("HASH_INSECURE");
  if (hash.digest === undefined) throw hashUnavailable(hash.code);
  return { version, hash };
}

/**
 * Returns settings that make CIDs of the same form. @throws NodeError when the hash cannot be
 * computed
 */
export function settingsOf({ version, multihash: { code } }: CID): CidSettings {
  const hash = hashCoded(code);
  if (hash?.digest === undefined) throw hashUnavailable(code);
  return { version, hash };
}
