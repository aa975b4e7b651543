/** CIDs as text, and what they are made of: no store is asked. */
import type { CID } from "multiformats/cid";
import { codecs } from "../formats/cid/codecs.ts";
import { type CidFormat, cidFormat, FormatError, formatCid } from "../formats/cid/format.ts";
import { hashFunctions } from "../formats/cid/hashes.ts";
import { base32, bases, multibaseNamed } from "../formats/cid/multibase.ts";
import { NodeError } from "../util/errors.ts";
import { type CallOptions, listOf } from "./common.ts";

export interface CidFormatOptions extends CallOptions {
  /** A format with directives such as `%s`, `%v`, `%c`, `%h`; `%s` by default. */
  readonly f?: string | undefined;
  /** The version to convert to: `0` or `1`. */
  readonly v?: string | undefined;
  /** The codec to convert to, by name. */
  readonly codec?: string | undefined;
  /** The multibase to write in, by name or prefix. */
  readonly b?: string | undefined;
}

export interface CidFormatResult {
  /** As it was given. */
  readonly cidStr: string;
  /** "" where that failed. */
  readonly formatted: string;
  /** "" where it did not fail. */
  readonly errorMsg: string;
}

export interface CodeAndName {
  readonly code: number;
  readonly name: string;
}

type Cids = CID | string | readonly (CID | string)[];

export interface CidApi {
  /** Writes CIDs in another version, codec, base or form. @throws NodeError for a format that is none */
  format(cids: Cids, options?: CidFormatOptions): AsyncIterable<CidFormatResult>;
  /** Writes CIDs as version 1 in base32. */
  base32(cids: Cids, options?: CallOptions): AsyncIterable<CidFormatResult>;
  /** The multibase encodings, by the codes of their prefixes. */
  bases(options?: CallOptions): Promise<CodeAndName[]>;
  /** The codecs of content. */
  codecs(options?: CallOptions): Promise<CodeAndName[]>;
  /** The hash functions that may be used. */
  hashes(options?: CallOptions): Promise<CodeAndName[]>;
}

/** Faults of the format end the call; a CID that is none is a result like any other. */
async function* formatAll(cids: Cids, format: () => CidFormat): AsyncGenerator<CidFormatResult> {
  const wanted = format();
  for (const cid of listOf(cids)) yield formatOne(String(cid).trim(), wanted);
}

function formatOne(cidStr: string, format: CidFormat): CidFormatResult {
  try {
    return { cidStr, formatted: formatCid(cidStr, format), errorMsg: "" };
  } catch (error) {
    if (error instanceof FormatError || !(error instanceof NodeError)) throw error;
    return { cidStr, formatted: "", errorMsg: error.message };
  }
}

export function cidApi(): CidApi {
  return {
    format: (cids, { f = "%s", v = "", codec = "", b = "" } = {}) =>
      formatAll(cids, () => ({
        ...cidFormat({ format: f, version: v, codec }),
        base: b === "" ? undefined : multibaseNamed(b),
      })),
    base32: (cids) => formatAll(cids, () => ({ format: "%s", version: 1, base: base32 })),
    bases: async () => bases.map(({ prefix, name }) => ({ code: prefix.charCodeAt(0), name })),
    codecs: async () => [...codecs].map(([name, code]) => ({ code, name })),
    hashes: async () => hashFunctions.filter(({ allowed }) => allowed).map(({ code, name }) => ({ code, name })),
  };
}
