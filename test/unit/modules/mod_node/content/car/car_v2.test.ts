/**
 * Archives of version 2, built by hand. The expected results are those of Kubo 0.43, except that
 * Kubo does not report a truncated file.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { type CarCounts, importCar } from "#node/content/car/import.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";

const unhex = (text: string) => Buffer.from(text, "hex");
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest();
const cidOf = (bytes: Uint8Array) => Buffer.concat([unhex("01551220"), sha256(bytes)]);
const hello = Buffer.from("hello");
const world = Buffer.from("world");

/** Prefixes bytes with their length, which is less than 16384. */
function section(...parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(parts);
  const head = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7];
  return Buffer.concat([Buffer.from(head), bytes]);
}

const header = (roots: readonly Uint8Array[], version: number) =>
  section(
    unhex("a265726f6f7473"),
    Buffer.of(0x80 + roots.length),
    ...roots.flatMap((root) => [unhex("d82a582500"), root]),
    unhex("6776657273696f6e"),
    Buffer.of(version),
  );

const version1 = (roots = [cidOf(hello)], blocks = [hello, world]) =>
  Buffer.concat([header(roots, 1), ...blocks.map((block) => section(cidOf(block), block))]);

const payload = version1();
const firstBlock = payload.length - section(cidOf(world), world).length;
const pragma = unhex("0aa16776657273696f6e02");

interface Parts {
  readonly pragma?: Buffer;
  readonly padding?: number;
  readonly offset?: number | bigint;
  readonly size?: number | bigint;
  readonly index?: number | bigint;
  readonly payload?: Buffer;
  readonly tail?: Uint8Array;
}

function version2(parts: Parts = {}): Buffer {
  const { padding = 0, payload: inner = payload, tail = new Uint8Array() } = parts;
  const { offset = 51 + padding, size = inner.length, index = 0 } = parts;
  const numbers = Buffer.alloc(24);
  for (const [at, number] of [offset, size, index].entries())
    numbers.writeBigUInt64LE(BigInt.asUintN(64, BigInt(number)), at * 8);
  return Buffer.concat([parts.pragma ?? pragma, Buffer.alloc(16), numbers, Buffer.alloc(padding, 7), inner, tail]);
}

const index = { index: 51 + payload.length + 9, tail: Buffer.alloc(200, 0x81) };

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

async function imported(car: Buffer, size = 64) {
  const node = new BlockService(memoryBlocks());
  const counts: CarCounts = { blocks: 0, bytes: 0 };
  const roots = await importCar(node, pieces(car, size), { counts });
  return { node, counts, roots: roots.map(String) };
}

const root = "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq";

describe("an archive of version 2 is imported", () => {
  const whole = { blocks: 2, bytes: 10 };
  const cases: Readonly<Record<string, readonly [Buffer, CarCounts, roots?: readonly string[]]>> = {
    "without an index": [version2(), whole],
    "with padding": [version2({ padding: 1000 }), whole],
    "with an index": [version2(index), whole],
    "with padding and an index": [version2({ ...index, padding: 100 }), whole],
    "with an index that is said to lie within the payload": [version2({ index: 60 }), whole],
    "with an index that is said to lie beyond the file": [version2({ index: 1_000_000_000 }), whole],
    "whose payload is said to be longer than the file": [version2({ size: payload.length + 1000 }), whole],
    "whose payload is said to have 4 EiB": [version2({ size: 2n ** 62n }), whole],
    "up to where its payload is said to end": [version2({ size: firstBlock }), { blocks: 1, bytes: 5 }],
    "with another archive behind it": [version2({ tail: version1([cidOf(world)], [Buffer.from("third")]) }), whole],
    "with roots in its pragma": [version2({ pragma: header([cidOf(world)], 2) }), whole],
    "without roots": [version2({ payload: version1([]) }), whole, []],
  };
  for (const [what, [car, counted, roots = [root]]] of Object.entries(cases)) {
    test(what, async () => {
      for (const size of [1, 13, 51, 100_000]) {
        const { node, counts, roots: found } = await imported(car, size);
        assert.deepEqual([counts, found], [counted, roots]);
        assert.equal((await Array.fromAsync(node.store.keys())).length, counted.blocks);
      }
    });
  }

  test("an archive of version 1 without roots is imported, as in Kubo", async () => {
    const { counts, roots } = await imported(version1([]));
    assert.deepEqual([counts, roots], [whole, []]);
  });

  test("in pieces whose memory is reused", async () => {
    const car = version2({ ...index, padding: 77 });
    const memory = Buffer.alloc(10);
    async function* reused() {
      for (let at = 0; at < car.length; at += memory.length) {
        const piece = memory.subarray(0, Math.min(memory.length, car.length - at));
        piece.set(car.subarray(at, at + piece.length));
        yield piece;
      }
    }
    const node = new BlockService(memoryBlocks());
    assert.deepEqual((await importCar(node, reused())).map(String), [root]);
  });

  test("and its source is read to its end and closed", async () => {
    let ended = false;
    let closed = false;
    async function* source() {
      try {
        yield* pieces(version2(index), 64);
        ended = true;
      } finally {
        closed = true;
      }
    }
    await importCar(new BlockService(memoryBlocks()), source());
    assert.deepEqual([ended, closed], [true, true]);
  });
});

describe("an archive of version 2 is rejected", () => {
  const refused: Readonly<Record<string, readonly [Buffer, string]>> = {
    "that ends behind its pragma": [pragma, "unexpected EOF"],
    "whose header is cut off": [version2().subarray(0, 30), "unexpected EOF"],
    "whose padding is cut off": [version2({ padding: 100 }).subarray(0, 100), "unexpected EOF"],
    "whose payload is missing": [version2().subarray(0, 51), "unexpected EOF"],
    "whose payload begins beyond the file": [version2({ offset: 100_000 }), "unexpected EOF"],
    "whose payload begins at its end": [version2({ offset: 51 + payload.length }), "unexpected EOF"],
    "whose payload begins at 4 EiB": [version2({ offset: 2n ** 62n }), "unexpected EOF"],
    "whose payload ends within its header": [version2({ size: 5 }), "unexpected EOF"],
    "whose payload ends within a block": [version2({ size: firstBlock + 10 }), "unexpected EOF"],
    "whose payload begins in the header": [version2({ offset: 50 }), "invalid data payload offset: 50"],
    "whose payload begins at 0": [version2({ offset: 0 }), "invalid data payload offset: 0"],
    "whose payload begins before 0": [version2({ offset: -5 }), "invalid data payload offset: 18446744073709551611"],
    "whose payload has no bytes": [version2({ size: 0 }), "invalid data payload size: 0"],
    "whose payload has a negative size": [version2({ size: -1 }), "invalid data payload size: 18446744073709551615"],
    "whose index begins before 0": [version2({ index: -1 }), "invalid index offset: 18446744073709551615"],
    "whose payload is another of version 2": [
      version2({ payload: version2() }),
      "invalid data payload header version; expected 1, got 2",
    ],
    "whose payload is a pragma": [
      version2({ payload: pragma }),
      "invalid data payload header version; expected 1, got 2",
    ],
    "whose payload has version 3": [
      version2({ payload: header([cidOf(hello)], 3) }),
      "invalid data payload header version; expected 1, got 3",
    ],
    "whose payload is none": [
      version2({ payload: unhex("03010203") }),
      "invalid header: malformed stream: invalid appearance of uint token; expected start of map",
    ],
    "whose payload has a header that is too long": [
      version2({ payload: unhex("ffffffffff7f"), size: 10n ** 9n }),
      "invalid car: a section of 4398046511103 bytes is longer than 134217728",
    ],
    "that has version 3": [unhex("0aa16776657273696f6e03"), "invalid car version: 3"],
  };
  for (const [what, [car, message]] of Object.entries(refused)) {
    test(what, async () => {
      for (const size of [1, 13, 100_000]) await assert.rejects(imported(car, size), { name: "NodeError", message });
    });
  }

  test("if only version 1 is supported, as in go-ipfs 0.9", async () => {
    const importing = importCar(new BlockService(memoryBlocks()), pieces(version2(), 64), { rules: "0.9" });
    await assert.rejects(importing, { message: "invalid car version: 2" });
  });
});
