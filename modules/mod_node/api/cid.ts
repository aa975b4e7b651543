/** Converts CIDs and lists their parts, without access to any store. */
import type { CID } from "multiformats/cid";
import { codecsBy, type Names, workingCodecs } from "../formats/cid/codecs.ts";
import { type CidFormat, cidFormat, formatCid } from "../formats/cid/format.ts";
import { hashesBy } from "../formats/cid/hashes.ts";
import { type CidInspection, inspectCid } from "../formats/cid/inspect.ts";
import { base32, bases, laterBases, multibaseNamed } from "../formats/cid/multibase.ts";
import { parsePeerId } from "../formats/peer_id.ts";
import { NodeError } from "../util/errors.ts";
import { type CallOptions, listOf } from "./common.ts";

export interface CidFormatOptions extends CallOptions {
  /** A format with directives such as `%s`, `%v`, `%c`, `%h`; `%s` by default. */
  readonly f?: string | undefined;
  /** The version to convert to: `0` or `1`. */
  readonly v?: string | undefined;
  /** The codec to convert to, by name. */
  readonly codec?: string | undefined;
  /**
   * The multibase to write in, by name or prefix. If `names` is the multicodec table, this option
   * produces CIDs of version 1.
   */
  readonly b?: string | undefined;
  /** The table of codec names for reading and writing. */
  readonly names?: Names;
}

export interface CidFormatResult {
  /** The CID as it was given. */
  readonly cidStr: string;
  /** The converted CID; "" if the conversion failed. */
  readonly formatted: string;
  /** Why the conversion failed; "" if it succeeded. */
  readonly errorMsg: string;
}

export interface CodeAndName {
  readonly code: number;
  readonly name: string;
}

export interface CidBasesOptions extends CallOptions {
  /** Also list the encodings that were added after go-ipfs 0.9. */
  readonly later?: boolean | undefined;
}

export type { CidInspection };

export interface CidCodesOptions extends CallOptions {
  /** The table of names; that of go-ipfs 0.9 by default. */
  readonly names?: Names;
}

export interface CidCodecsOptions extends CidCodesOptions {
  /** Only list codecs that Kubo 0.43 can create nodes of. */
  readonly supported?: boolean | undefined;
}

export type { Names };

type Cids = CID | string | readonly (CID | string)[];

export interface CidApi {
  /**
   * Converts CIDs to another version, codec, base or format. @throws NodeError for an invalid
   * format
   */
  format(cids: Cids, options?: CidFormatOptions): AsyncIterable<CidFormatResult>;
  /** Converts CIDs to version 1 in base32. */
  base32(cids: Cids, options?: CallOptions): AsyncIterable<CidFormatResult>;
  /** Resolves to the multibase encodings, with the codes of their prefixes. */
  bases(options?: CidBasesOptions): Promise<CodeAndName[]>;
  /** Returns the parts of a CID; a text that is not a CID gives a result with `errorMsg`. */
  inspect(cid: CID | string): CidInspection;
  /** Resolves to the codecs of content. */
  codecs(options?: CidCodecsOptions): Promise<CodeAndName[]>;
  /** Resolves to the allowed hash functions. */
  hashes(options?: CidCodesOptions): Promise<CodeAndName[]>;
}

/** An invalid format fails the call; an invalid CID gives a result with `errorMsg`. */
async function* formatAll(cids: Cids, format: () => CidFormat): AsyncGenerator<CidFormatResult> {
  const wanted = format();
  for (const cid of listOf(cids)) yield formatOne(String(cid).trim(), wanted);
}

function formatOne(cidStr: string, format: CidFormat): CidFormatResult {
  try {
    return { cidStr, formatted: formatCid(cidStr, format), errorMsg: "" };
  } catch (error) {
    if (!(error instanceof NodeError) || error.code === "CID_SPECIFIER_INVALID") throw error;
    return { cidStr, formatted: "", errorMsg: error.message };
  }
}

export function cidApi(): CidApi {
  return {
    format: (cids, { f = "%s", v = "", codec = "", b = "", names } = {}) =>
      formatAll(cids, () => {
        const base = b === "" ? undefined : multibaseNamed(b);
        return cidFormat({ format: f, version: v, codec, base, names });
      }),
    base32: (cids) => formatAll(cids, () => ({ format: "%s", version: 1, base: base32 })),
    bases: async ({ later = false } = {}) =>
      (later ? laterBases : bases).map(({ prefix, name }) => ({ code: prefix.codePointAt(0) as number, name })),
    inspect: (cid) => inspectCid(String(cid), (text) => parsePeerId(text).toCID()),
    codecs: async ({ names, supported = false } = {}) =>
      codecsBy(names)
        .filter(([name]) => !supported || workingCodecs.has(name))
        .map(([name, code]) => ({ code, name })),
    hashes: async ({ names } = {}) => hashesBy(names).map(({ code, name }) => ({ code, name })),
  };
}
