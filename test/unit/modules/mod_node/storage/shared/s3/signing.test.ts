import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Signer, type Unsigned } from "#node/storage/shared/s3/signing.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

// "Signature Calculations for the Authorization Header", in the documentation of Amazon S3.
const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const at = new Date("2013-05-24T00:00:00Z");
const base = { host: "examplebucket.s3.amazonaws.com", query: {}, headers: {}, sha256: sha256("") };
const examples: readonly (readonly [Unsigned, string, string])[] = [
  [
    { ...base, method: "GET", path: "/test.txt", headers: { range: "bytes=0-9" } },
    "host;range;x-amz-content-sha256;x-amz-date",
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  [
    {
      ...base,
      method: "PUT",
      path: "/test%24file.text",
      headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
      sha256: sha256("Welcome to Amazon S3."),
    },
    "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  ],
  [
    { ...base, method: "GET", path: "/", query: { prefix: "J", "max-keys": "2" } },
    "host;x-amz-content-sha256;x-amz-date",
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
];

test("signatures equal the examples of Amazon", () => {
  const signer = new Signer("us-east-1");
  for (const [unsigned, names, signature] of examples) {
    const { headers } = signer.sign(unsigned, credentials, at);
    assert.equal(
      headers.authorization,
      `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
    );
  }
});

test("another day or secret has another key, and a token is signed", () => {
  const signer = new Signer("us-east-1");
  const sign = (secretAccessKey: string, day: string, sessionToken?: string) =>
    signer.sign(
      { ...base, method: "GET", path: "/a" },
      { accessKeyId: "A", secretAccessKey, sessionToken },
      new Date(day),
    );
  const signed = [
    sign("x", "2026-01-01"),
    sign("x", "2026-01-02"),
    sign("y", "2026-01-02"),
    sign("y", "2026-01-02", "t"),
  ];
  assert.equal(new Set(signed.map(({ headers }) => headers.authorization)).size, 4);
  assert.equal(sign("x", "2026-01-01").headers.authorization, signed[0]?.headers.authorization);
  assert.match(signed[3]?.headers.authorization ?? "", /;x-amz-security-token,/);
});
