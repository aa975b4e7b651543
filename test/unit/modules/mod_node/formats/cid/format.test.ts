import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cidFormat, formatCid } from "#node/formats/cid/format.ts";
import { multibaseNamed } from "#node/formats/cid/multibase.ts";
import { parseCid } from "#node/formats/cid/text.ts";

const zero = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const one = "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354";

test("every format directive is replaced by its part of the CID", () => {
  const format = "%% %b %B %v %V %c %C %h %H %L %S %P";
  const rest = "afybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354";
  assert.equal(
    formatCid(one, { format }),
    `% base32 b cidv1 1 protobuf 112 sha2-256 18 32 ${rest} cidv1-protobuf-sha2-256-32`,
  );
});

test("a CID of version 0 stays in base58btc when it is converted to version 1, unless a base is given", () => {
  assert.match(formatCid(zero, { format: "%s", version: 1 }), /^zdj7W/);
  assert.equal(formatCid(zero, { format: "%s", version: 1, base: multibaseNamed("base32") }), one);
  assert.equal(formatCid(one, { format: "%s", version: 0 }), zero);
});

test("errors in the format string have another code than errors in the CID", () => {
  assert.throws(() => formatCid(one, { format: "%x" }), { code: "CID_SPECIFIER_INVALID" });
  assert.throws(() => formatCid(one, { format: "a%" }), { code: "CID_SPECIFIER_INVALID" });
  const other = { code: "CID_NOT_CONVERTIBLE" };
  assert.throws(() => formatCid(zero, { format: "%s", base: multibaseNamed("base32") }), other);
  assert.throws(() => formatCid("bafkqaaa", { format: "%s", version: 0 }), other);
  assert.throws(() => cidFormat({ format: "%s", version: "0", codec: "raw" }), /cannot convert to CIDv0/);
});

test("with multicodec names, a base other than base58btc implies version 1", () => {
  const names = "multicodec";
  const made = (given: Partial<Parameters<typeof cidFormat>[0]>) =>
    cidFormat({ format: "%s", version: "", codec: "", names, ...given });
  const base = multibaseNamed("base32");
  assert.equal(formatCid(zero, made({ base })), one);
  assert.match(formatCid(zero, made({ base: multibaseNamed("z") })), /^zdj7W/);
  assert.equal(formatCid(zero, made({ format: "%P" })), "cidv0-dag-pb-sha2-256-32");
  assert.match(formatCid(zero, made({ codec: "protobuf" })), /^zaXv/);
  assert.throws(() => made({ version: "0", base }), /any multibase other than the implicit base58btc/);
  assert.throws(() => made({ codec: "odd" }), { message: 'unknown multicodec: "odd"' });
});

test("a CID with another hash function than sha2-256 cannot be converted to version 0", () => {
  const identity = "bafyaaaa";
  assert.throws(() => formatCid(identity, { format: "%s", version: 0 }), /only sha2-255-32 is allowed with CIDv0/);
});

describe("texts that are not a CID are rejected with the error text of go-ipfs", () => {
  const rows: Readonly<Record<string, string>> = {
    bad: "expected 1 as the cid version number, got: 0",
    bafy: "varints malformed, could not reach the end",
    mA: "illegal base64 data at input byte 0",
    "b!": "illegal base32 data at input byte 0",
    fabc: "encoding/hex: odd length hex string",
    fg1: "encoding/hex: invalid byte: U+0067 'g'",
    z0: "Invalid base58 digit ('0')",
    "0011": "expected 1 as the cid version number, got: 3",
    QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3N0: "input isn't valid multihash",
    x: "cid too short",
    yoyo: "selected encoding not supported",
  };
  for (const [text, message] of Object.entries(rows))
    test(text, () => assert.throws(() => parseCid(text), { message }));
});

test("base32 text is decoded regardless of case and of bits after the last byte", () => {
  const upper = `b${one.slice(1).toUpperCase()}`;
  assert.equal(parseCid(upper).toString(), one);
  assert.equal(parseCid(`${one.slice(0, -1)}5`).toString(), one);
});
