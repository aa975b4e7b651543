import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ChunkedFraming, CountedFraming, type Framing } from "#core/http/patches/node/framing.ts";

/**
 * Feeds bytes to a framing in reads of one size. Returns the contents, and how many bytes belong to
 * the body.
 */
function follow(framing: Framing, bytes: Buffer, size: number) {
  const contents: Buffer[] = [];
  let used = 0;
  while (used < bytes.length && !framing.isOver) {
    const read = Buffer.from(bytes.subarray(used, used + size));
    used += framing.scan(read);
    contents.push(Buffer.from(framing.contents(read)));
  }
  return { text: Buffer.concat(contents).toString("latin1"), used, isOver: framing.isOver };
}

const sizes = [1, 2, 3, 5, 7, 16, 1000];

test("a body of a stated length ends with its last byte", () => {
  for (const size of sizes) {
    assert.deepEqual(follow(new CountedFraming(7), Buffer.from("1234567GET"), size), {
      text: "1234567",
      used: 7,
      isOver: true,
    });
  }
});

describe("a chunked body", () => {
  test("ends before the line end of its last chunk, however it is cut into reads", () => {
    const rest = "cd\r\n3\r\nefg\r\n00A\r\n0123456789\r\n1\r\n\r\r\n";
    for (const size of sizes) {
      const found = follow(new ChunkedFraming(2), Buffer.from(`${rest}0\r\n\r\nGET`), size);
      assert.deepEqual(found, { text: "cdefg0123456789\r", used: rest.length + 1, isOver: true });
    }
  });

  const oddities = {
    "a size with more behind it": ["2;a=b\r\nxy\r\n", 1],
    "a size that is none": ["xyz\r\n", 0],
    "a line without its return": ["2\nxy", 1],
    "a return without its line feed": ["2\rxy", 2],
    "no size": ["\r\nxy", 0],
    "a size of many digits": [`${"0".repeat(13)}1\r\nx`, 12],
  } as const;
  for (const [name, [line, used]] of Object.entries(oddities)) {
    test(`is left to the parser at ${name}`, () => {
      for (const size of sizes) {
        const found = follow(new ChunkedFraming(1), Buffer.from(`a\r\n${line}`), size);
        assert.deepEqual(found, { text: "a", used: 3 + used, isOver: true });
      }
    });
  }

  test("is left to the parser where a chunk does not end with its size", () => {
    assert.deepEqual(follow(new ChunkedFraming(1), Buffer.from("abc"), 3), { text: "a", used: 1, isOver: true });
  });

  test("is entered where the parser's own pieces show a boundary", () => {
    const read = Buffer.from("ab\r\n3\r\ncde\r\n4\r\nf");
    const framing = ChunkedFraming.behind(read, [1], [1, 3, 1]);
    assert.ok(framing !== undefined);
    assert.equal(follow(framing, Buffer.from("ghi\r\n0\r\n"), 100).text, "ghi");
    assert.equal(ChunkedFraming.behind(read, [1], [1, 3]), undefined, "pieces that are others");
    assert.equal(ChunkedFraming.behind(read, [1], [1, 4, 1]), undefined, "pieces that are others");
    assert.equal(ChunkedFraming.behind(Buffer.from("abc"), [1], [2]), undefined, "no boundary");
    assert.equal(ChunkedFraming.behind(Buffer.from("\nab\r\n1\r\nc"), [], [2, 1]), undefined, "begins between chunks");
    assert.equal(ChunkedFraming.behind(Buffer.from("a\r\n0\r\n"), [1], []), undefined, "the last chunk");
    assert.equal(ChunkedFraming.behind(Buffer.from("a\r\n1\r\nb\r\n"), [1], [1]), undefined, "a chunk that may end");
    assert.equal(ChunkedFraming.behind(read, [1], []), undefined);
  });
});
