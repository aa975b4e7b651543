import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { suite, test } from "node:test";
import { parseCid } from "#node/formats/cid/text.ts";
import { FrameReader } from "#node/formats/protobuf/frame_reader.ts";
import { encodeMessage } from "#node/network/bitswap/encode_message.ts";
import { cidOfWireBlock, cidPrefix, copyCid, keyOf, keyOfWireBlock } from "#node/network/bitswap/keys.ts";
import { decodeMessage, type Message } from "#node/network/bitswap/message.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { blockOf } from "./support.ts";

const none: Message = { full: false, entries: [], blocks: [], presences: [], pendingBytes: 0 };
const bytesOf = (message: Message) => Buffer.concat(encodeMessage(message));

function read(frame: Uint8Array, step: number): Uint8Array[] {
  const frames = new FrameReader(1024 * 1024, new BufferPool());
  const whole: Uint8Array[] = [];
  for (let at = 0; at < frame.length; at += step) whole.push(...frames.read(frame.subarray(at, at + step)));
  assert.equal(frames.bufferedBytes, 0);
  return whole;
}

suite("messages", () => {
  test("messages have the bytes of the specification", () => {
    const cid = Buffer.from("01551220aa", "hex");
    const message: Message = {
      full: true,
      entries: [
        { cid, priority: 300, cancel: false, have: true, sendDontHave: true },
        { cid, priority: 0, cancel: true, have: false, sendDontHave: false },
      ],
      blocks: [
        { prefix: Buffer.from("01551220", "hex"), data: Buffer.from("abc") },
        { prefix: undefined, data: Buffer.from("old") },
      ],
      presences: [
        { cid, have: true },
        { cid, have: false },
      ],
      pendingBytes: 5,
    };
    const wantlist = "0a0e0a0501551220aa10ac02200128010a090a0501551220aa18011001";
    const parcels = "1a0b0a04015512201203616263" + "12036f6c64";
    const presences = "22070a0501551220aa" + "22090a0501551220aa1001";
    const body = `0a${(wantlist.length / 2).toString(16)}${wantlist}${parcels}${presences}2805`;
    assert.equal(bytesOf(message).toString("hex"), (body.length / 2).toString(16) + body);
    const { droppedEntries, ...parsed } = decodeMessage(Buffer.from(body, "hex"));
    assert.equal(droppedEntries, 0);
    assert.deepEqual(parsed, {
      ...message,
      entries: message.entries.map((entry) => ({ ...entry })),
    });
  });

  test("messages contain a wantlist even if they are empty", () => {
    assert.equal(bytesOf(none).toString("hex"), "020a00");
  });

  test("long blocks are not copied", () => {
    const data = randomBytes(100_000);
    const pieces = encodeMessage({ ...none, blocks: [{ prefix: Buffer.from("01551220", "hex"), data }] });
    assert.ok(pieces.includes(data));
    const [parcel] = decodeMessage(read(Buffer.concat(pieces), 1 << 20)[0] as Uint8Array).blocks;
    assert.ok(Buffer.compare(parcel?.data as Uint8Array, data) === 0);
  });

  test("fields of later versions are ignored", () => {
    const later = Buffer.concat([Buffer.from("7a0461626364", "hex"), Buffer.from("0a021001", "hex")]);
    assert.equal(decodeMessage(later).full, true);
  });

  test("malformed messages are refused", () => {
    for (const hex of ["0aff01", "1a05", "0b", "0a030a05", "ffffffffffffffffffff01"]) {
      assert.throws(() => decodeMessage(Buffer.from(hex, "hex")), hex);
    }
  });

  test("wantlist entries above the limit are dropped, and other lists above it are refused", () => {
    const entry = Buffer.from("0a00", "hex");
    const entries = Buffer.concat(Array.from({ length: 20_000 }, () => entry));
    const head = Buffer.from("0ac0b802", "hex");
    const { entries: stored, droppedEntries } = decodeMessage(Buffer.concat([head, entries]));
    assert.equal(stored.length + droppedEntries, 20_000);
    assert.ok(droppedEntries > 0);
    const presences = Buffer.concat(Array.from({ length: 20_000 }, () => Buffer.from("2200", "hex")));
    assert.throws(() => decodeMessage(presences), /too many parts/);
    const wantlist = Buffer.concat([entries, entries, entries, entries, entries, entries, entries, entries]);
    const length = Buffer.from("0a80c413", "hex");
    assert.throws(() => decodeMessage(Buffer.concat([length, wantlist])), /too many wants/);
  });
});

suite("frames", () => {
  const messages = [Buffer.alloc(0), randomBytes(1), randomBytes(127), randomBytes(128), randomBytes(70_000)];
  const lengthOf = (length: number) => {
    const digits: number[] = [];
    for (let rest = length; ; rest >>= 7) {
      digits.push(rest > 127 ? (rest & 127) | 128 : rest);
      if (rest <= 127) return Buffer.from(digits);
    }
  };
  const stream = Buffer.concat(messages.flatMap((message) => [lengthOf(message.length), message]));

  for (const step of [1, 7, 1000, 65_536, 1 << 20]) {
    test(`frames are found in chunks of ${step} bytes`, () => {
      const whole = read(stream, step);
      assert.equal(whole.length, messages.length);
      for (const [at, message] of messages.entries()) assert.ok(Buffer.compare(message, whole[at] as Uint8Array) === 0);
    });
  }

  test("frames within one chunk are not copied", () => {
    const [, , , , last] = read(stream, 1 << 20);
    assert.equal(last?.buffer, stream.buffer);
  });

  test("frames that are copied out of chunks free them on request, unless other views share them", () => {
    const whole = bytesOf({ ...none, pendingBytes: 1 });
    const cut = bytesOf({ ...none, pendingBytes: 2 });
    for (const transfer of [true, false]) {
      const frames = new FrameReader(1024, new BufferPool(), { transfer });
      const of = (...parts: readonly Uint8Array[]) => Buffer.from(new Uint8Array(Buffer.concat(parts)).buffer);
      const first = of(whole, cut.subarray(0, 3));
      const second = of(cut.subarray(3, 4));
      const third = of(cut.subarray(4), whole);
      const got = [first, second, third].flatMap((chunk) => [...frames.read(chunk)]);
      assert.deepEqual(
        got.map((frame) => decodeMessage(frame).pendingBytes),
        [1, 2, 1],
      );
      assert.equal(second.length, transfer ? 0 : 1);
      assert.ok(first.length > 0 && third.length > 0);
    }
  });

  test("frames that are too long are refused before they arrive", () => {
    assert.throws(() => [...new FrameReader(100, new BufferPool()).read(Buffer.from([101]))], /too long/);
    assert.throws(
      () => [...new FrameReader(1 << 22, new BufferPool()).read(Buffer.from("ffffffff01", "hex"))],
      /too long/,
    );
  });
});

suite("keys", () => {
  test("keys are the same for all forms of a CID and for the received block", async () => {
    const { cid, bytes } = blockOf(Buffer.from("something"));
    const key = keyOf(cid);
    assert.equal(await keyOfWireBlock({ prefix: cidPrefix(cid), data: bytes }), key);
    assert.equal(await keyOfWireBlock({ prefix: undefined, data: bytes }), key);
    assert.equal(cidOfWireBlock({ prefix: cidPrefix(cid), data: bytes }, key)?.toString(), cid.toString());
    assert.equal(cidOfWireBlock({ prefix: undefined, data: bytes }, key)?.version, 0);
  });

  test("keys exist for other hash functions, long codes and short digests", async () => {
    const blake = parseCid("bafk2bzaceaj62ybwyjvhvlo4a4orapdzpkmmnhbbiapo4rnnlgbzvvrdccnsk");
    const prefix = cidPrefix(blake);
    const data = randomBytes(100);
    const key = (await keyOfWireBlock({ prefix, data })) as string;
    const cid = cidOfWireBlock({ prefix, data }, key);
    assert.equal(cid?.multihash.code, blake.multihash.code);
    assert.deepEqual(cidPrefix(cid as NonNullable<typeof cid>), prefix);
    assert.equal(keyOf(cid as NonNullable<typeof cid>), key);
  });

  test("keys do not exist for identity, unknown and insecure hash functions, nor for an invalid prefix", async () => {
    const data = Buffer.from("x");
    for (const hex of ["01550001", "0155d50110", "01559999990120", "01", "", "0155", "01551240"]) {
      assert.equal(await keyOfWireBlock({ prefix: Buffer.from(hex, "hex"), data }), undefined, hex);
    }
  });

  test("a CID that is wanted outlasts the message, also one in a Buffer", () => {
    const multihash = `1220${"ab".repeat(32)}`;
    const message = Buffer.from(`0155${multihash}`, "hex");
    const cid = copyCid(message);
    message.fill(0);
    assert.equal(Buffer.from(cid.multihash.bytes).toString("hex"), multihash);
  });

  test("a CID that is too long is refused", () => {
    assert.throws(() => copyCid(Buffer.concat([Buffer.from("015500e807", "hex"), Buffer.alloc(1000)])), /too long/);
    assert.throws(() => copyCid(Buffer.from("zz")));
  });
});
