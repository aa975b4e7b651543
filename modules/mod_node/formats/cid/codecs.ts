/** Names of codecs as the reference has them (go-cid 0.0.7), in the order of their numbers. */

export const raw = 0x55;
export const dagPb = 0x70;
export const dagCbor = 0x71;
export const libp2pKey = 0x72;
export const dagJson = 0x0129;

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

/** Undefined for an unknown name. `libp2p-key` is accepted, though it is neither listed nor printed. */
export const codecNamed = (name: string): number | undefined => (name === "libp2p-key" ? libp2pKey : codecs.get(name));
export const codecName = (code: number): string => names.get(code) ?? `codec?${code}`;
