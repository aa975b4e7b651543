/**
 * Texts of CIDs, peer ids, addresses and paths in arguments, configurations, records and messages.
 */
import { multiaddr } from "@multiformats/multiaddr";
import { identity } from "multiformats/hashes/identity";
import { uncheckedPath } from "#node/content/mfs/path.ts";
import { fullPath, parsePath } from "#node/content/resolver/path.ts";
import { cidFormat, formatCid } from "#node/formats/cid/format.ts";
import { bases, multibaseNamed } from "#node/formats/cid/multibase.ts";
import { castCid, cidText, parseCid } from "#node/formats/cid/text.ts";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { parseChunker } from "#node/formats/unixfs/chunker/parse.ts";
import { parseDnslink } from "#node/network/ipns/dnslink.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { parseDuration } from "#node/util/go/duration.ts";
import { quote } from "#node/util/go/text.ts";
import { HEAD, type InputTarget, KIB, type Make, MIB, repeated, target } from "../target.ts";

/** One base for each way of encoding. The others of its kind use the same code. */
const kinds = ["0", "f", "b", "C", "k", "z", "Z", "M", "u"];

/** Digits that exist in every base except binary. */
const digits = (prefix: string) => (prefix === "0" ? "10" : "2a");

/** Digits, zeros, padding and invalid digits after the prefix. */
export const encoded: Readonly<Record<string, Make<string>>> = Object.fromEntries(
  bases
    .filter(({ prefix }) => kinds.includes(prefix))
    .flatMap(({ name, prefix }): (readonly [string, Make<string>])[] => [
      [`${name} digits`, (size) => prefix + repeated(digits(prefix), size)],
      [`${name} zeros`, (size) => prefix + repeated("1", size)],
      [`${name} padding`, (size) => `${prefix}${repeated("=", size)}a`],
      [`${name} no digit`, (size) => `${prefix}${repeated("a", size)}!`],
    ]),
);

export const bytesOfCid = (size: number): Uint8Array => {
  const { bytes } = identity.digest(new Uint8Array(size).fill(0xa5));
  const cid = new Uint8Array(bytes.length + 2);
  cid.set([1, 0x55]);
  cid.set(bytes, 2);
  return cid;
};

export const path: Readonly<Record<string, Make<string>>> = {
  slashes: (size) => `/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn${repeated("/", size)}x`,
  "many components": (size) => `/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn${repeated("/a", size)}`,
  "up and down": (size) => `/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn${repeated("/a/..", size)}`,
  "only slashes": (size) => repeated("/", size),
  quotes: (size) => repeated('"\\\n', size),
  "a long CID": (size) => `/ipfs/k${repeated("2a", size)}`,
};

export const addresses: Readonly<Record<string, Make<string>>> = {
  slashes: (size) => `/ip4/127.0.0.1${repeated("/", size)}x`,
  protocols: (size) => repeated("/quic", size),
  addresses: (size) => repeated("/ip4/127.0.0.1/tcp/1", size),
  "a long peer id": (size) => `/p2p/Qm${repeated("2a", size)}`,
  "a long CID": (size) => `/p2p/k${repeated("2a", size)}`,
  "a long port": (size) => `/ip4/1.2.3.4/tcp/${repeated("1", size)}`,
  "a long name": (size) => `/dns4/${repeated("a.", size)}`,
  "a long hash": (size) => `/ip4/1.2.3.4/udp/1/quic-v1/webtransport/certhash/9${repeated("1", size)}`,
  "a long path": (size) => `/unix${repeated("/a", size)}`,
};

const EVERYTHING = MIB;

export const textTargets: readonly InputTarget[] = [
  target("CIDs as text", EVERYTHING, encoded, parseCid),
  target(
    "CIDs as bytes",
    2 * MIB,
    { identity: bytesOfCid, cut: (size) => bytesOfCid(size).subarray(0, size - 1) },
    castCid,
  ),
  ...["base58btc", "base36", "base32"].map((base) =>
    target(`CIDs written in ${base}`, 2 * MIB, { identity: bytesOfCid }, (bytes) =>
      cidText(castCid(bytes), multibaseNamed(base)),
    ),
  ),
  target("cid/format", EVERYTHING, { ...encoded, "a long form": (size) => repeated("%s", size) }, (text) =>
    text.startsWith("%")
      ? formatCid(
          "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn",
          cidFormat({ format: text.slice(0, 20_000), version: "", codec: "" }),
        )
      : formatCid(text, cidFormat({ format: "%s %m %d", version: "1", codec: "" })),
  ),
  target(
    "peer ids",
    EVERYTHING,
    {
      ...encoded,
      Qm: (size) => `Qm${repeated("2a", size)}`,
      "12D3": (size) => `12D3${repeated("2a", size)}`,
      ones: (size) => repeated("1", size),
    },
    parsePeerId,
  ),
  target("paths", MIB, path, (text) => [quote(text), fullPath(text), parsePath(text)]),
  target("paths of files", HEAD, path, uncheckedPath),
  target("DNSLink records", 64 * 1024, { ...path, blanks: (size) => `dnslink=${repeated(" ", size)}x` }, parseDnslink),
  target("addresses", EVERYTHING, addresses, parseMultiaddr),
  target(
    "addresses as bytes",
    160 * KIB,
    {
      "a long peer id": (size) => Uint8Array.from([0xa5, 0x03, ...varint(size), ...new Uint8Array(size).fill(0x12)]),
      protocols: (size) =>
        new Uint8Array(Math.floor(size / 2) * 2).fill(0xcc).map((_, at) => (at % 2 === 0 ? 0xcc : 0x03)),
      addresses: (size) =>
        Uint8Array.from({ length: Math.floor(size / 8) * 8 }, (_, at) => [4, 127, 0, 0, 1, 6, 0, 1][at % 8] as number),
    },
    (bytes) => String(multiaddr(bytes)),
  ),
  target(
    "durations",
    HEAD,
    {
      digits: (size) => `${repeated("1", size)}s`,
      parts: (size) => repeated("1s", size),
      words: (size) => repeated("s", size),
    },
    parseDuration,
  ),
  target(
    "chunkers",
    HEAD,
    { digits: (size) => `size-${repeated("1", size)}`, parts: (size) => `rabin-${repeated("1-", size)}` },
    parseChunker,
  ),
];

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest >= 128 ? (rest % 128) | 0x80 : rest);
    if (rest < 128) return bytes;
  }
}
