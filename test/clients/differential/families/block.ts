/** Stores, reads and removes blocks of random bytes with random codecs and hash functions. */
import {
  type CallResponse,
  type Case,
  type CaseCall,
  type Compared,
  comparedByDefault,
  type Family,
  type Level,
} from "../family.ts";
import { fieldOf, flags, upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const LENGTH = 6;
const RAW = "bafkqaaa";
const ABSENT = "QmXe7gvqFfynvyYqMwq6Xi7U2AYBtB8WSUS812vJTtPYwD";

const codecs: Readonly<Record<Level, readonly string[]>> = {
  "0.9": ["format=v0", "format=protobuf", "format=cbor", "format=raw", "format=x", "format="],
  "0.43": [
    ...[
      "cid-codec=raw",
      "cid-codec=dag-pb",
      "cid-codec=dag-cbor",
      "cid-codec=dag-json",
      "cid-codec=json",
      "cid-codec=cbor",
    ],
    ...[
      "cid-codec=libp2p-key",
      "cid-codec=x",
      "cid-codec=",
      "cid-codec=0x55",
      "format=v0",
      "format=protobuf",
      "format=cbor",
    ],
  ],
};
const hashes = [
  "sha2-256",
  "sha2-512",
  "sha3-512",
  "sha1",
  "blake2b-256",
  "blake2b-160",
  "md5",
  "identity",
  "x",
  "murmur3-128",
  "",
];
const lengths = ["-1", "0", "16", "20", "32", "64", "100", "x"];
/** Bytes that are a node of dag-pb, a node of dag-cbor, and neither. */
const contents = [
  "",
  "hello",
  "\u000a\u0004\u0008\u0001\u0018\u0000",
  "\u00a1aa\u0001",
  "\u00ff\u0000",
  "x".repeat(300),
];

function put(random: CaseRandom, level: Level): CaseCall {
  const options = [
    ...random.some(0.5, [random.pick(codecs[level])]),
    ...random.some(0.4, [`mhtype=${random.pick(hashes)}`]),
    ...random.some(0.2, [`mhlen=${random.pick(lengths)}`]),
  ];
  return { path: `block/put?${options.join("&")}`, parts: [upload(Buffer.from(random.pick(contents), "latin1"))] };
}

function* sequence(random: CaseRandom, level: Level): Case {
  const known = [RAW, ABSENT, "bogus", `/ipfs/${RAW}`];
  for (let left = LENGTH; left > 0; left -= 1) {
    const name = random.pick(["put", "put", "put", "get", "stat", "rm"]);
    if (name === "put") {
      const key = fieldOf(yield put(random, level), "Key");
      if (key !== undefined) known.push(key);
    } else if (name === "rm") {
      const args = random.chance(0.2) ? [random.pick(known), random.pick(known)] : [random.pick(known)];
      yield {
        path: `block/rm?${args.map((cid) => `arg=${cid}`).join("&")}${flags(random, ["force=true", "quiet=true"])}`,
      };
    } else yield { path: `block/${name}?arg=${random.pick(known)}` };
  }
}

function compare(response: CallResponse): Compared {
  const { status, body } = response;
  if (status === 200 && !body.equals(Buffer.from(body.toString()))) return { response: `200 ${body.toString("hex")}` };
  const { response: text, refusal } = comparedByDefault(response);
  // A removal reports each failure as a line of its own.
  return { response: text, refusal };
}

export const family: Family = {
  name: "block",
  random: sequence,
  compare,
  explained: [
    {
      reason:
        "the same bytes with another codec are a separate block here, which remains after a removal and is read for all of their CIDs",
      applies: ({ reference, ours }) =>
        ours.response.startsWith("200") && /not found|could not find/.test(reference.refusal ?? reference.response),
    },
    {
      reason: "if one of the arguments is no CID, nothing is removed: the reference removes the blocks before it",
      applies: ({ call, reference, ours }) =>
        /^block\/rm\?.*&arg=/.test(call.path) && reference.refusal === ours.refusal,
    },
  ],
  recorded: 40,
};
