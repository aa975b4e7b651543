import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { peerIdFromMultihash } from "@libp2p/peer-id";
import { multiaddr } from "@multiformats/multiaddr";
import { base32, base32upper } from "multiformats/bases/base32";
import { base58btc } from "multiformats/bases/base58";
import { create } from "multiformats/hashes/digest";
import { BaseX, MAX_BASE_X_BYTES } from "#node/formats/cid/base_x.ts";
import { MULTIFORMATS_VERSION } from "#node/formats/cid/patches/multiformats/base_x.ts";
import { parseCid } from "#node/formats/cid/text.ts";
import { parsePeerId } from "#node/formats/peer_id.ts";

const alphabets = {
  base10: "0123456789",
  base36: "0123456789abcdefghijklmnopqrstuvwxyz",
  base58btc: "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
};

/** Encodes by dividing the number by the base once per digit: slow, but certainly correct. */
function slowly(bytes: Uint8Array, alphabet: string): string {
  let zeros = 0;
  while (bytes[zeros] === 0) zeros += 1;
  let digits = "";
  const base = BigInt(alphabet.length);
  for (let rest = BigInt(`0x0${Buffer.from(bytes).toString("hex")}`); rest > 0n; rest /= base) {
    digits = alphabet.charAt(Number(rest % base)) + digits;
  }
  return alphabet.charAt(0).repeat(Math.min(zeros, bytes.length)) + digits;
}

for (const [name, alphabet] of Object.entries(alphabets)) {
  test(`${name} encodes bytes of any length as a number in that base, with leading zeros preserved`, () => {
    const base = new BaseX(alphabet, name);
    for (const length of [0, 1, 2, 3, 4, 7, 32, 34, 35, 36, 100, 255, 256, 257, 258, 300, 511, 700]) {
      for (const make of [
        () => 0,
        () => 255,
        (at: number) => (at * 151 + length) % 256,
        (at: number) => (at < 3 ? 0 : at),
      ]) {
        const bytes = Uint8Array.from({ length }, (_, at) => make(at));
        const text = slowly(bytes, alphabet);
        assert.equal(base.encode(bytes), text);
        assert.deepEqual(base.decode(text), bytes);
      }
    }
  });
}

test("a base without case accepts digits of both cases and rejects characters outside its alphabet", () => {
  const base = new BaseX(alphabets.base36, "base36", true);
  const bytes = Uint8Array.of(0, 1, 200, 3);
  assert.deepEqual(base.decode(base.encode(bytes).toUpperCase()), bytes);
  for (const text of ["a b", "é", "\u{1f600}", "-", "\u0130"]) assert.throws(() => base.decode(text), SyntaxError);
  assert.throws(() => new BaseX(alphabets.base58btc, "base58btc").decode("0"), SyntaxError);
});

test("encoding and decoding immediately reject input over the length limit", () => {
  const base = new BaseX(alphabets.base58btc, "base58btc");
  const longest = new Uint8Array(MAX_BASE_X_BYTES).fill(255);
  assert.deepEqual(base.decode(base.encode(longest)), longest);
  assert.throws(
    () => base.encode(new Uint8Array(MAX_BASE_X_BYTES + 1)),
    /^RangeError: 8193 bytes are too many for base58btc/,
  );
  assert.throws(
    () => base.decode("2".repeat(20_000)),
    /^RangeError: 20000 characters are too many for base58btc: take base32$/,
  );
});

test("errors for CIDs and peer ids that are too long name the length and suggest base32", () => {
  const long = "2a".repeat(20_000);
  assert.throws(() => parseCid(`k${long}`), /^NodeError: 40000 characters are too many for base36: take base32$/);
  assert.throws(() => parseCid(`z${long}`), /^NodeError: 40000 characters are too many for base58btc: take base32$/);
  assert.throws(() => parsePeerId(`12D3${long}`), /^NodeError: failed to parse peer ID: 40004 characters are too many/);
});

test("the patched multiformats library applies the length limit to peer ids and multiaddrs", () => {
  const path = createRequire(import.meta.url)
    .resolve("multiformats/cid")
    .replace(/(?<=node_modules\/multiformats\/).*/, "package.json");
  assert.equal(JSON.parse(readFileSync(path, "utf8")).version, MULTIFORMATS_VERSION);
  const bytes = new Uint8Array(MAX_BASE_X_BYTES + 1);
  assert.throws(() => base58btc.encode(bytes), RangeError);
  assert.throws(() => String(peerIdFromMultihash(create(0x12, bytes))), RangeError);
  const address = Uint8Array.of(0xa5, 0x03, (bytes.length & 0x7f) | 0x80, bytes.length >> 7, ...bytes);
  assert.throws(() => String(multiaddr(address)), RangeError);
});

test("the fast base32 encoder agrees with the library's upper-case base32 for every length", () => {
  for (const length of [0, 1, 2, 3, 4, 5, 6, 34, 36, 37, 38, 39, 40, 68, 639, 640, 641, 1023, 1024, 1025, 70_000]) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 151 + length) & 255);
    const text = base32.encode(bytes);
    assert.equal(text.toUpperCase(), base32upper.encode(bytes));
    assert.deepEqual(base32.decode(text), bytes);
  }
});
