/** Turns the options of an add into settings, with the reference's rules for CID versions and its refusals. */
import { type HashFunction, hashNamed, sha256 } from "../../formats/cid/hashes.ts";
import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { parseChunker } from "../../formats/unixfs/chunker/parse.ts";
import { NodeError } from "../../util/errors.ts";
import type { AddSettings } from "../unixfs/add.ts";

/** Undefined is an option that was not given. */
export interface AddOptions {
  readonly chunker?: string | undefined;
  readonly cidVersion?: number | undefined;
  /** Name of a hash function, in any letter case. */
  readonly hash?: string | undefined;
  readonly rawLeaves?: boolean | undefined;
  readonly inline?: boolean | undefined;
  readonly inlineLimit?: number | undefined;
  readonly nocopy?: boolean | undefined;
  readonly trickle?: boolean | undefined;
  readonly wrap?: boolean | undefined;
  readonly progress?: boolean | undefined;
  /** Build sharded directories (HAMT). */
  readonly sharded?: boolean | undefined;
}

/** @throws NodeError for options that exclude each other. An invalid chunker fails with the first file. */
export function addSettings(options: AddOptions): AddSettings {
  const { inline = false, inlineLimit = 32, nocopy = false } = options;
  const hash = hashOf(options.hash);
  if (nocopy && options.rawLeaves === false) {
    throw new NodeError("nocopy option requires '--raw-leaves' to be enabled as well");
  }
  const version = versionOf(options.cidVersion, hash);
  return {
    version,
    hash,
    inlineLimit: inline ? inlineLimit : undefined,
    rawLeaves: options.rawLeaves ?? (nocopy || version === 1),
    chunker: lazily(options.chunker ?? ""),
    trickle: options.trickle === true,
    sharded: options.sharded === true,
    wrap: options.wrap === true,
    progress: options.progress === true,
  };
}

/** A hash function by name, in any letter case. @throws NodeError */
export function hashOf(name: string | undefined): HashFunction {
  if (name === undefined) return sha256;
  const lower = name.toLowerCase();
  const hash = hashNamed(lower);
  if (hash === undefined) throw new NodeError(`unrecognized hash function: ${lower}`);
  return hash;
}

function versionOf(given: number | undefined, hash: HashFunction): 0 | 1 {
  const unknown = () => new NodeError(`unknown CID version: ${given}`);
  if (hash === sha256) {
    if (given === undefined || given <= 0) return 0;
    if (given === 1) return 1;
    throw unknown();
  }
  if (given === 0) throw new NodeError("CIDv0 only supports sha2-256");
  if (given !== undefined && given !== 1 && given !== -1) throw unknown();
  return 1;
}

function lazily(text: string): () => Chunker {
  let make: (() => Chunker) | undefined;
  return () => {
    make ??= parseChunker(text);
    return make();
  };
}
