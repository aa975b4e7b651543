import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeUnixfs, encodeUnixfs } from "#node/formats/unixfs/format.ts";

/** A UnixFS message of a file whose blocksizes are packed into one field. */
const packed = (...sizes: number[]) => Uint8Array.from([8, 2, 0x22, sizes.length, ...sizes]);

test("blocksizes are read from separate fields and from a packed field", () => {
  assert.deepEqual(decodeUnixfs(packed(1, 0x80, 1, 0)).blocksizes, [1, 128, 0]);
  assert.deepEqual(decodeUnixfs(encodeUnixfs({ type: "File", blocksizes: [1, 128, 0] })).blocksizes, [1, 128, 0]);
});

test("a blocksize of more than 64 bits is rejected, packed or not", () => {
  const long = [...new Array(91).fill(0xff), 0];
  const overflow = { message: "proto: integer overflow" };
  assert.throws(() => decodeUnixfs(packed(...long)), overflow);
  assert.throws(() => decodeUnixfs(packed(...new Array(9).fill(0xff), 2)), overflow);
  assert.throws(() => decodeUnixfs(Uint8Array.from([8, 2, 0x20, ...long])), overflow);
  assert.throws(() => decodeUnixfs(packed(0x80)), { message: "unexpected EOF" });
  assert.deepEqual(decodeUnixfs(packed(...new Array(9).fill(0xff), 1)).blocksizes, [2 ** 64]);
});
