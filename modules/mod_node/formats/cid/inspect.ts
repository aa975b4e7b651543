/** Lists the parts of a CID for `cid inspect`. */
import { CID } from "multiformats/cid";
import { NodeError } from "../../util/errors.ts";
import { dagPb, libp2pKey, multicodecName } from "./codecs.ts";
import { hashCoded } from "./hashes.ts";
import { fitsVersion0, makeCid } from "./make.ts";
import { base32, multibaseNamed } from "./multibase.ts";
import { parseCidWithBase } from "./text.ts";

export interface CidInspection {
  /** The text as the client wrote it. */
  readonly cid: string;
  readonly version: number;
  readonly multibase: { readonly prefix: string; readonly name: string };
  /** The name is `unknown` for a code that is not in the table. */
  readonly multicodec: { readonly code: number; readonly name: string };
  /** The digest is hexadecimal; its length is in bytes. */
  readonly multihash: {
    readonly code: number;
    readonly name: string;
    readonly length: number;
    readonly digest: string;
  };
  /** The same CID as version 0, if that is possible. */
  readonly cidV0?: string;
  /** The same CID as version 1, in base32; a key in base36. */
  readonly cidV1: string;
  /** Why the text is not a CID. All other fields are empty then. */
  readonly errorMsg?: string;
}

const none: Omit<CidInspection, "cid"> = {
  version: 0,
  multibase: { prefix: "", name: "" },
  multicodec: { code: 0, name: "" },
  multihash: { code: 0, name: "", length: 0, digest: "" },
  cidV1: "",
};

/** `asPeer` returns the CID for a text that is a peer id, and throws for any other text. */
export function inspectCid(text: string, asPeer: (text: string) => CID): CidInspection {
  try {
    const { cid, base } = parseCidWithBase(text);
    const { version, code, multihash } = cid;
    const { digest } = multihash;
    return {
      cid: text,
      version,
      multibase: { prefix: base.prefix, name: base.name },
      multicodec: { code, name: multicodecName(code) ?? "unknown" },
      multihash: {
        code: multihash.code,
        name: hashCoded(multihash.code)?.name ?? "unknown",
        length: digest.length,
        digest: Buffer.from(digest).toString("hex"),
      },
      ...(code === dagPb && fitsVersion0(code, multihash) && { cidV0: String(makeCid(0, code, multihash)) }),
      cidV1: textOfVersion1(cid),
    };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    return {
      cid: text,
      ...none,
      errorMsg: `invalid CID: ${error.details?.later ?? error.message}${hint(text, asPeer)}`,
    };
  }
}

const textOfVersion1 = (cid: CID): string => {
  const base = cid.code === libp2pKey ? multibaseNamed("base36") : base32;
  return (cid.version === 1 ? cid : CID.createV1(cid.code, cid.multihash)).toString(base.encoder);
};

function hint(text: string, asPeer: (text: string) => CID): string {
  try {
    const cid = textOfVersion1(asPeer(text));
    return `\nNote: the value is a PeerID; inspect its CID representation instead:\n  ${cid}`;
  } catch {
    return "";
  }
}
