/** Of which form CIDs in the namespace are: as options say it, or as what is there already has it. */
import type { CID } from "multiformats/cid";
import { hashCoded, hashUnavailable } from "../../formats/cid/hashes.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { hashOf } from "../adder/settings.ts";
import type { CidSettings } from "../unixfs/build.ts";

/** Undefined stands for what was not said. */
export interface CidOptions {
  readonly version?: number | undefined;
  /** Name of a hash function, in any letter case; with it version 0 becomes 1. */
  readonly hash?: string | undefined;
}

/** Undefined when nothing was said. @throws NodeError for an unknown version, or a hash function that cannot be used */
export function cidSettings(options: CidOptions): CidSettings | undefined {
  const { version: given = 0, hash: name } = options;
  if (options.version === undefined && name === undefined) return undefined;
  const version = name !== undefined && given === 0 ? 1 : given;
  if (version !== 0 && version !== 1) throw new NodeError(`unknown CID version: ${version}`);
  const hash = hashOf(name);
  if (!hash.allowed) throw failure("HASH_INSECURE");
  if (hash.digest === undefined) throw hashUnavailable(hash.code);
  return { version, hash };
}

/** The settings under which a block like this one is made. @throws NodeError when its hash cannot be computed */
export function settingsOf({ version, multihash: { code } }: CID): CidSettings {
  const hash = hashCoded(code);
  if (hash?.digest === undefined) throw hashUnavailable(code);
  return { version, hash };
}
