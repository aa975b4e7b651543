/** Signature Version 4, with the examples of its specification and its public test suite. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, type SignedRequest, signedHeaders } from "#modules/mod_backup/backends/signature.ts";

const signatureOf = (request: SignedRequest, keyId: string, secret: string) =>
  /Signature=(\w+)$/.exec(signedHeaders(request, { keyId, secret }).authorization ?? "")?.[1];

const s3 = (request: Partial<SignedRequest> & Pick<SignedRequest, "url">) =>
  signatureOf(
    { method: "GET", bodyHash: hashOf(""), region: "us-east-1", at: new Date("2013-05-24T00:00:00Z"), ...request },
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  );

const bucket = "https://examplebucket.s3.amazonaws.com";

test("the signature of an object, with a range, is that of the specification", () => {
  const signature = s3({ url: new URL(`${bucket}/test.txt`), headers: { Range: "bytes=0-9" } });
  assert.equal(signature, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
});

test("the signature of an upload, with an encoded character and additional headers, is that of the specification", () => {
  const signature = s3({
    method: "PUT",
    url: new URL(`${bucket}/test%24file.text`),
    headers: { Date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    bodyHash: hashOf("Welcome to Amazon S3."),
  });
  assert.equal(signature, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
});

test("the signature of a query whose parameter has no value is that of the specification", () => {
  const signature = s3({ url: new URL(`${bucket}/?lifecycle`) });
  assert.equal(signature, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
});

test("the signature of a list with parameters is that of the specification", () => {
  const signature = s3({ url: new URL(`${bucket}/?max-keys=2&prefix=J`) });
  assert.equal(signature, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
});

test("the signature for another service is that of get-vanilla in the test suite", () => {
  const request: SignedRequest = {
    method: "GET",
    url: new URL("https://example.amazonaws.com/"),
    bodyHash: hashOf(""),
    region: "us-east-1",
    service: "service",
    at: new Date("2015-08-30T12:36:00Z"),
  };
  const signature = signatureOf(request, "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
  assert.equal(signature, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
});
