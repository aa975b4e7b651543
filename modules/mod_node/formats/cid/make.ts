/** Builds CIDs from their parts. */
import { CID, type MultihashDigest } from "multiformats/cid";
import { dagCbor, dagJson, dagPb, raw } from "./codecs.ts";
import { sha256 } from "./hashes.ts";

/** Version 0 allows only one codec, and only one hash function with a full digest. */
export const fitsVersion0 = (codec: number, { code, digest }: MultihashDigest): boolean =>
  codec === dagPb && code === sha256.code && digest.length === sha256.length;

/** `version` may be 0 only if `fitsVersion0` returns true. */
export const makeCid = (version: 0 | 1, codec: number, multihash: MultihashDigest): CID =>
  CID.create(version, codec, multihash as MultihashDigest<0x12>);

/** Returns the CIDs that a multihash can have with the most common codecs. */
export function usualForms(multihash: MultihashDigest): CID[] {
  const forms = [dagPb, raw, dagCbor, dagJson].map((code) => makeCid(1, code, multihash));
  if (fitsVersion0(dagPb, multihash)) forms.push(makeCid(0, dagPb, multihash));
  return forms;
}
