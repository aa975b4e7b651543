/** Converts CIDs: version, codec, multibase, and format strings, for `cid format`. */

import { CID } from "multiformats/cid";
import { failure } from "../../util/errors.ts";
import { codecNameBy, codecNamed, dagPb, multicodecNamed, type Names } from "./codecs.ts";
import { hashCoded } from "./hashes.ts";
import { fitsVersion0, makeCid } from "./make.ts";
import { type Base, base58btc } from "./multibase.ts";
import { parseCidWithBase } from "./text.ts";

export interface CidFormat {
  /** A format string with directives such as `%s`. */
  readonly format: string;
  readonly version?: 0 | 1 | undefined;
  readonly codec?: number | undefined;
  /** Undefined selects base58btc for version 0, otherwise the base of the given text. */
  readonly base?: Base | undefined;
  readonly names?: Names;
}

/** Arguments of a call. An empty text means that the argument was not given. */
type Given = Readonly<Record<"format" | "version" | "codec", string>> & {
  readonly base?: Base | undefined;
  readonly names?: Names;
};

/**
 * Parses everything except the base. With `names`, a base other than base58btc implies version 1.
 *
 * @throws NodeError with the error text of go-ipfs
 */
export function cidFormat({ format, base, names, ...given }: Given): CidFormat {
  if (!format.includes("%")) throw failure("CID_FORMAT_INVALID", { format });
  const codec = given.codec === "" ? undefined : codecIn(given.codec, names);
  const version = versionIn(given.version);
  if (version === 0 && codec !== undefined && codec !== dagPb) throw failure("CID_CODEC_NOT_OF_VERSION_0");
  if (names === undefined || base === undefined) return { format, version, codec, base, names };
  if (version === 0 && base !== base58btc) {
    throw failure("OPTION_CONFLICT", {
      reason: "cannot convert to CIDv0 with any multibase other than the implicit base58btc",
    });
  }
  return { format, version: version ?? 1, codec, base, names };
}

function codecIn(name: string, names: Names): number {
  if (names !== undefined) return multicodecNamed(name);
  const codec = codecNamed(name);
  if (codec === undefined) throw failure("CODEC_NAME_UNKNOWN", { reason: `unknown IPLD codec: ${name}` });
  return codec;
}

function versionIn(version: string): 0 | 1 | undefined {
  if (!["", "0", "1"].includes(version)) throw failure("CID_VERSION_INVALID", { version });
  return version === "" ? undefined : version === "0" ? 0 : 1;
}

/**
 * @throws NodeError CID_SPECIFIER_INVALID for an invalid format string, which clients can fix;
 * other errors are about the CID
 */
export function formatCid(text: string, { format, version, codec, base, names }: CidFormat): string {
  const { cid, base: own } = parseCidWithBase(text);
  const recoded = codec === undefined || codec === cid.code ? cid : CID.createV1(codec, cid.multihash);
  const converted = version === undefined ? recoded : convert(recoded, version, names);
  return expand(format, converted, base ?? (converted.version === 0 ? base58btc : own), names);
}

function convert(cid: CID, version: 0 | 1, names: Names): CID {
  if (version === 1) return cid.toV1();
  const { multihash } = cid;
  if (cid.code !== dagPb)
    throw failure("CID_NOT_CONVERTIBLE", { reason: `can't convert non-${codecNameBy(dagPb, names)} nodes to cidv0` });
  if (!fitsVersion0(cid.code, multihash))
    throw failure("CID_NOT_CONVERTIBLE", { reason: "only sha2-255-32 is allowed with CIDv0" });
  return makeCid(0, cid.code, multihash);
}

const hashName = (code: number): string => hashCoded(code)?.name ?? `hash?${code}`;

const directives: Readonly<Record<string, (cid: CID, base: Base, names: Names) => string>> = {
  "%": () => "%",
  b: (_, base) => base.name,
  B: (_, base) => base.prefix,
  v: ({ version }) => `cidv${version}`,
  V: ({ version }) => String(version),
  c: ({ code }, _, names) => codecNameBy(code, names),
  C: ({ code }) => String(code),
  h: ({ multihash }) => hashName(multihash.code),
  H: ({ multihash }) => String(multihash.code),
  L: ({ multihash }) => String(multihash.digest.length),
  m: ({ multihash }, base) => base.encoder.encode(multihash.bytes),
  M: ({ multihash }, base) => base.encoder.encode(multihash.bytes).slice(1),
  d: ({ multihash }, base) => base.encoder.encode(multihash.digest),
  D: ({ multihash }, base) => base.encoder.encode(multihash.digest).slice(1),
  s: cidToText,
  S: (cid, base) => base.encoder.encode(cid.bytes).slice(1),
  P: ({ version, code, multihash }, _, names) =>
    `cidv${version}-${codecNameBy(code, names)}-${hashName(multihash.code)}-${multihash.digest.length}`,
};

function cidToText(cid: CID, base: Base): string {
  if (cid.version === 1) return cid.toString(base.encoder);
  if (base !== base58btc) throw failure("CID_NOT_CONVERTIBLE", { reason: "invalid base encoding" });
  return cid.toString();
}

function expand(format: string, cid: CID, base: Base, names: Names): string {
  return format.replace(/%(.?)/gsu, (found, letter: string) => {
    if (letter === "") throw failure("CID_SPECIFIER_INVALID", { reason: "premature end of format string" });
    const directive = Object.hasOwn(directives, letter) ? directives[letter] : undefined;
    if (directive === undefined)
      throw failure("CID_SPECIFIER_INVALID", { reason: `unrecognized specifier in format string: ${found}` });
    return directive(cid, base, names);
  });
}
