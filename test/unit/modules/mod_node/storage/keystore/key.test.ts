import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { generateKeyPair, privateKeyFromProtobuf, privateKeyToProtobuf } from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { peerIdEncoder } from "#node/formats/peer_id.ts";
import { decodeKey, generateKey } from "#node/storage/keystore/key.ts";

interface KnownKey {
  readonly name: string;
  readonly private_key_b64: string;
  readonly peer_id: Readonly<Record<string, string>>;
}

const fixture = new URL("../../../../../fixtures/vectors/network.json", import.meta.url);
const known: readonly KnownKey[] = JSON.parse(readFileSync(fixture, "utf8")).sections.keys.cases;

for (const { name, private_key_b64: text, peer_id: ids } of known) {
  test(`the key ${name} has the id of go-ipfs in every base`, () => {
    const { bytes, id } = decodeKey(Buffer.from(text, "base64"));
    assert.equal(Buffer.from(bytes).toString("base64"), text);
    for (const [base, written] of Object.entries(ids)) {
      if (base !== "multihash_hex") assert.equal(peerIdEncoder(base)(id), written);
    }
  });
}

test("a secp256k1 key has the id that libp2p computes", async () => {
  const made = await generateKeyPair("secp256k1");
  assert.equal(decodeKey(privateKeyToProtobuf(made)).id.toString(), peerIdFromPrivateKey(made).toString());
});

/** Keys that go-ipfs 0.9.0 imported with these ids. */
const ecdsa: [curve: string, key: string, id: string][] = [
  [
    "prime256v1",
    "CAMSeTB3AgEBBCBSsEGlwIbxY1dODPPwZ/3opQHWHBB7objxtszr4IZ6T6AKBggqhkjOPQMBB6FEA0IABFpoPGyXPeCMsI6hMB0ITGmlDXBRWkiGX/vxsYAOkWzLLtPmW1Ixc7L/BWgssexci2BfxOWlElVVVpgbp6ybxQU=",
    "QmepmJoHRpJvvdyhDLPwEWrgSBc88quxtp8j6FaPmPe5KQ",
  ],
  [
    "secp384r1",
    "CAMSpwEwgaQCAQEEMFwIFvUnj3kXm82jMMfMLqLTZLrZRxH/uLFKn/XmOOErV1+Bkb1zrKaE0S2nacP+SaAHBgUrgQQAIqFkA2IABC5wF/7U2HG79/lLs3xm5tcjyxnGuTVC9o+oJFed4DSi3QHzmUuEjDHIpw7zy766oJk7w01IYvk/atLE3RgcaD4ehZF5WcXslU/qS9v8603t4SZ9B4H8ses2cbnFtJ5OwA==",
    "QmVskzgkkjyHw25S9T5so9BdciaVNYDG2FbJtH6S7FPx2k",
  ],
  [
    "secp521r1",
    "CAMS3wEwgdwCAQEEQgC8ZCp1PlQqyajDi3cRZfVEdd3UK0TPEjMTDhQ7dKo2+PpT4Sdu6OqG2j4ddD9ldNMkaDsZU654foX9CFWELLq8T6AHBgUrgQQAI6GBiQOBhgAEAEKHStfxImEAA62DPnVH6yXXI8s8TtvqPEGXPJkZPhDVBt0ApALid656CRUSEy2sVnnk60p3psSzZmDYdnPsofq1AfT8Qr5lk6rjCRuqp2MY3B3ReZrN+cVNftuL4bxvfTvWRoBR2Gz0eqBikl7lvja5xnNwl3rD7RFOCVZ9VnPBW7l4",
    "QmbUENwyutDZ6wZuUZ4hxo6bJHayoayHrc23iK5Zwh5RWT",
  ],
];
for (const [curve, text, id] of ecdsa) {
  test(`an ECDSA key of ${curve} has the id of go-ipfs`, () => {
    assert.equal(decodeKey(Buffer.from(text, "base64")).id.toString(), id);
  });
}

test("generated keys load in libp2p under the same id", async () => {
  for (const form of [
    { type: "ed25519" },
    { type: "Ed25519", size: 7 },
    { type: "rsa" },
    { type: "rsa", size: 3072 },
  ]) {
    const { bytes, id } = await generateKey(form);
    const loaded = privateKeyFromProtobuf(bytes);
    assert.equal(peerIdFromPrivateKey(loaded).toString(), id.toString());
    const message = Buffer.from("signed");
    assert.ok(await loaded.publicKey.verify(message, await loaded.sign(message)));
  }
});

test("a repeated public key is removed, and must be the same", () => {
  const [text = ""] = known.map((each) => each.private_key_b64);
  const pair = Buffer.from(text, "base64").subarray(4);
  const long = (repeated: Uint8Array) => Buffer.concat([Buffer.from("08011260", "hex"), pair, repeated]);
  assert.equal(Buffer.from(decodeKey(long(pair.subarray(32))).bytes).toString("base64"), text);
  assert.throws(() => decodeKey(long(new Uint8Array(32))), /expected redundant ed25519 public key to be redundant/);
});

test("invalid keys are refused with the text of go-ipfs", () => {
  const cases = [
    ["", 'proto: required field "Type" not set'],
    ["0801", 'proto: required field "Data" not set'],
    ["08011240ab", "unexpected EOF"],
    ["08091202abcd", "invalid or unsupported key type"],
    ["08011202abcd", "expected ed25519 data size to be 64 or 96, got 2"],
    ["08021202abcd", "expected secp256k1 data size to be 32"],
  ] as const;
  for (const [hex, message] of cases) assert.throws(() => decodeKey(Buffer.from(hex, "hex")), { message });
  assert.throws(
    () => decodeKey(Buffer.from("08031202abcd", "hex")),
    /^NodeError: x509: failed to parse EC private key/,
  );
  assert.throws(() => decodeKey(Buffer.from("08001202abcd", "hex")), /^NodeError: the RSA key cannot be read/);
  const zero = Buffer.concat([Buffer.from("08021220", "hex"), new Uint8Array(32)]);
  assert.throws(() => decodeKey(zero), /the secp256k1 key is invalid/);
});

test("unsupported sizes and types are refused", async () => {
  const weak = privateKeyToProtobuf(await generateKeyPair("RSA", 1024));
  const message = "rsa keys must be >= 2048 bits to be useful";
  assert.throws(() => decodeKey(weak), { message });
  await assert.rejects(generateKey({ type: "rsa", size: 2047 }), { message });
  await assert.rejects(generateKey({ type: "rsa", size: 8193 }), /rsa keys must be <= 8192 bits/);
  await assert.rejects(generateKey({ type: "odd" }), { message: "unrecognized key type: odd" });
});
