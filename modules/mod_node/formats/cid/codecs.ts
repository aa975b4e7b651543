/** Names of codecs as go-cid 0.0.7 has them, ordered by code. */
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

export const raw = 0x55;
export const dagPb = 0x70;
export const dagCbor = 0x71;
export const libp2pKey = 0x72;
export const dagJose = 0x85;
export const dagJson = 0x0129;
export const cbor = 0x51;
export const json = 0x0200;

export const codecs: ReadonlyMap<string, number> = new Map([
  ["raw", raw],
  ["protobuf", dagPb],
  ["cbor", dagCbor],
  ["git-raw", 0x78],
  ["eth-block", 0x90],
  ["eth-block-list", 0x91],
  ["eth-tx-trie", 0x92],
  ["eth-tx", 0x93],
  ["eth-tx-receipt-trie", 0x94],
  ["eth-tx-receipt", 0x95],
  ["eth-state-trie", 0x96],
  ["eth-account-snapshot", 0x97],
  ["eth-storage-trie", 0x98],
  ["bitcoin-block", 0xb0],
  ["bitcoin-tx", 0xb1],
  ["zcash-block", 0xc0],
  ["zcash-tx", 0xc1],
  ["decred-block", 0xe0],
  ["decred-tx", 0xe1],
  ["dash-block", 0xf0],
  ["dash-tx", 0xf1],
  ["fil-commitment-unsealed", 0xf101],
  ["fil-commitment-sealed", 0xf102],
]);

const names = new Map([...codecs].map(([name, code]) => [code, name]));

/**
 * Returns undefined for an unknown name. `libp2p-key` is accepted, although it is neither listed
 * nor printed.
 */
export const codecNamed = (name: string): number | undefined => (name === "libp2p-key" ? libp2pKey : codecs.get(name));
export const codecName = (code: number): string => names.get(code) ?? `codec?${code}`;

/**
 * Names that later versions of go-cid accept and that go-cid 0.0.7 does not know, or gives to
 * another codec.
 */
const laterNames: ReadonlyMap<string, number> = new Map([
  ["identity", 0x00],
  ["dag-pb", dagPb],
  ["dag-cbor", dagCbor],
  ["libp2p-key", libp2pKey],
  ["dag-json", dagJson],
  ["rlp", 0x60],
  ["bencode", 0x63],
  ["torrent-info", 0x7b],
  ["torrent-file", 0x7c],
  ["blake3-hashseq", 0x80],
  ["leofcoin-block", 0x81],
  ["leofcoin-tx", 0x82],
  ["leofcoin-pr", 0x83],
  ["dag-jose", dagJose],
  ["dag-cose", 0x86],
  ["eth-receipt-log-trie", 0x9a],
  ["eth-receipt-log", 0x9b],
  ["bitcoin-witness-commitment", 0xb2],
  ["stellar-block", 0xd0],
  ["stellar-tx", 0xd1],
  ["swarm-manifest", 0xfa],
  ["swarm-feed", 0xfb],
  ["beeson", 0xfc],
  ["json", json],
  ["messagepack", 0x0201],
  ["car", 0x0202],
  ["swhid-1-snp", 0x01f0],
  ["rdfc-1", 0xb403],
  ["json-jcs", 0xb601],
]);

/**
 * Accepts a name of either version, or a number such as `0x70`. If a name such as `cbor` has two
 * meanings, the older one counts.
 */
export function anyCodec(text: string): number | undefined {
  if (/^0x[0-9a-f]{1,8}$/i.test(text)) return Number(text);
  return codecNamed(text) ?? laterNames.get(text);
}

/**
 * The multicodec table. There, `cbor` and `protobuf` are not the codecs that go-ipfs 0.9 means by
 * these names.
 */
const multicodecs: ReadonlyMap<string, number> = new Map([
  ...codecs,
  ...laterNames,
  ["protobuf", 0x50],
  ["cbor", cbor],
]);
const laterNamesByCode = new Map([...multicodecs].map(([name, code]) => [code, name]));

/**
 * Selects the names of codecs and hash functions: undefined for those of go-ipfs 0.9, "multicodec"
 * for those of the multicodec table as in Kubo 0.43.
 */
export type Names = "multicodec" | undefined;

/**
 * Entries of the multicodec table that are not codecs of content there. The codecs for sealed
 * storage belong to another category.
 */
const otherKinds: ReadonlySet<string> = new Set([
  ...["identity", "protobuf", "rlp", "bencode", "messagepack", "car"],
  ...["fil-commitment-unsealed", "fil-commitment-sealed"],
]);

const multicodecsOfContent: readonly (readonly [name: string, code: number])[] = [...multicodecs]
  .filter(([name]) => !otherKinds.has(name))
  .toSorted(([, one], [, other]) => one - other);

/** Lists the codecs of content, ordered by code. */
export const codecsBy = (names: Names): readonly (readonly [name: string, code: number])[] =>
  names === undefined ? [...codecs] : multicodecsOfContent;

/** Codecs for which Kubo 0.43 can create nodes. */
export const workingCodecs: ReadonlySet<string> = new Set([
  ...["cbor", "raw", "dag-pb", "dag-cbor", "libp2p-key", "git-raw", "dag-jose", "dag-json", "json"],
]);

/** Returns a text such as `codec?N` for a code without a name. */
export const codecNameBy = (code: number, names: Names): string =>
  names === undefined ? codecName(code) : (multicodecName(code) ?? `Code(${code})`);

/**
 * Finds a codec by its name in the multicodec table, or by its number (`0x70`, `112`).
 *
 * @throws NodeError
 */
export function multicodecNamed(text: string): number {
  const code = multicodecs.get(text) ?? (/^(?:0x[0-9a-f]{1,8}|\d{1,9})$/i.test(text) ? Number(text) : undefined);
  if (code === undefined) throw failure("CODEC_NAME_UNKNOWN", { reason: `unknown multicodec: ${quote(text)}` });
  return code;
}

/**
 * Returns the name in the multicodec table, as later versions of go-cid write it: `dag-pb`, not
 * `protobuf`.
 */
export const multicodecName = (code: number): string | undefined => laterNamesByCode.get(code);
