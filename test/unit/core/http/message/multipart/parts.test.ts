import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readParts } from "#core/http/message/multipart/parts.ts";
import { ModhostError } from "#core/util/errors.ts";
import { boundary, chunks, contentType, encode, field, isInvalid, readAll } from "./samples.ts";

describe("multipart bodies", () => {
  test("gives fields and files in order, same names and empty bodies included", async () => {
    const file = Buffer.from([0, 1, 2, 13, 10, 45, 45, 255]);
    const parts = await readAll(
      encode([
        field("a", "1"),
        { head: 'Content-Disposition: form-data; name="f"; filename="x.bin"\r\nContent-Type: image/png', body: file },
        field("a", "2"),
        field("empty", ""),
      ]),
    );
    assert.deepEqual(
      parts.map((part) => [part.name, part.filename, part.body.toString("latin1")]),
      [
        ["a", undefined, "1"],
        ["f", "x.bin", file.toString("latin1")],
        ["a", undefined, "2"],
        ["empty", undefined, ""],
      ],
    );
  });

  test("gives the same parts however the bytes are cut into chunks", async () => {
    // Text that is almost a boundary: the parser must return it as data.
    const tricky = Buffer.from(
      `\r\n--${boundary.slice(0, -1)}\r\n--${boundary}x\r\r\n-\r\n--\r\n--${boundary}-x`.repeat(5),
    );
    const samples = [
      field("one", tricky),
      field("two", ""),
      field("three", Buffer.concat([tricky, Buffer.alloc(300, "\r\n--")])),
    ];
    const bytes = encode(samples);
    let seed = 42;
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed / 2 ** 31;
    };
    for (let round = 0; round < 150; round += 1) {
      const most = round < 3 ? 1 : 2 + Math.floor(random() * 200);
      const parts = await readAll(bytes, contentType, () => 1 + Math.floor(random() * most));
      for (const [at, sample] of samples.entries())
        assert.ok(parts[at]?.body.equals(Buffer.from(sample.body)), `round ${round}`);
    }
  });

  test("a blank line ends the headers and nothing else, wherever a chunk ends", async () => {
    const contents = [
      "\r\n\r\n",
      `\r\n--${boundary}\rX\r\n\r\n`,
      `a: b\r\n\r\n\r\n--${boundary.slice(0, -1)}\r\n\r\n\r`,
      "",
      `${"y".repeat(5000)}\r\n\r`,
    ];
    const bytes = encode(contents.map((body, at) => field(`f${at}`, body)));
    for (const size of [1, 2, 3, 7, 50, 999, bytes.length]) {
      const read = await readAll(bytes, contentType, () => size);
      assert.deepEqual(
        read.map(({ body }) => body.toString()),
        contents,
      );
    }
  });

  test("ignores text before the first and after the last boundary", async () => {
    const bytes = encode([field("a")], { prologue: "This is a multipart message.\r\n", epilogue: "--nothing\r\nmore" });
    assert.equal((await readAll(bytes)).length, 1);
  });

  test("a body with no part at all is valid", async () => {
    assert.deepEqual(await readAll(encode([])), []);
  });

  test("has headers in lower case with underscores, repeated ones joined", async () => {
    const head = 'content-DISPOSITION: form-data; name="a"\r\nX-Note: one\r\nX-Note: two';
    const bytes = encode([{ head, body: "" }]);
    for await (const part of readParts(
      chunks(bytes, () => 7),
      contentType,
    )) {
      assert.equal(part.headers.x_note, "one, two");
      assert.equal(part.headers.content_disposition, 'form-data; name="a"');
      assert.equal(Object.getPrototypeOf(part.headers), null);
    }
  });

  test("reads names and file names as they were sent", async () => {
    const cases: [string, string | undefined, string | undefined][] = [
      ['form-data; name="a"; filename="C:\\dir\\file.txt"', "a", "C:\\dir\\file.txt"],
      ['form-data; name="a"; filename="folder/sub/file.txt"', "a", "folder/sub/file.txt"],
      ['form-data; name="a"; filename="folder%2Ffile%20x"', "a", "folder%2Ffile%20x"],
      ['form-data; name="a"; filename="say \\"hi\\"; ok"', "a", 'say "hi"; ok'],
      ['form-data; name="ключ"; filename="文件 😀.txt"', "ключ", "文件 😀.txt"],
      ["form-data; name=a; filename=plain.txt", "a", "plain.txt"],
      [`form-data; name="a"; filename="fallback"; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt`, "a", "naïve €.txt"],
      [`form-data; name="a"; filename*=iso-8859-1'en'%A3%20rates; filename="x"`, "a", "£ rates"],
      [`form-data; name="a"; filename*=UTF-8''%FF; filename="kept"`, "a", "kept"],
      ['form-data; filename=""', undefined, ""],
      ["attachment", undefined, undefined],
    ];
    for (const [disposition, name, filename] of cases) {
      const [part] = await readAll(
        encode([{ head: `Content-Disposition: ${disposition}`, body: "" }]),
        contentType,
        () => 3,
      );
      assert.deepEqual([part?.name, part?.filename], [name, filename], disposition);
    }
  });

  test("takes a header that is not UTF-8 as Latin-1", async () => {
    const bytes = encode([{ head: "Content-Disposition: form-data; name=NAME", body: "" }]);
    const at = bytes.indexOf("NAME");
    bytes.write("n\xe4me", at, "latin1");
    assert.equal((await readAll(bytes))[0]?.name, "näme");
  });

  test("accepts quoted boundaries and other multipart types", async () => {
    const bytes = encode([field("a")], { mark: "a b:c=d" });
    assert.equal((await readAll(bytes, 'Multipart/Mixed; charset=x; boundary="a b:c=d"')).length, 1);
  });

  test("text() decodes UTF-8 that was cut between chunks", async () => {
    for await (const part of readParts(
      chunks(encode([field("a", "grün 😀")]), () => 1),
      contentType,
    )) {
      assert.equal(await part.text(), "grün 😀");
    }
  });
});

describe("multipart bodies that are wrong", () => {
  test("names a missing or unusable boundary, and a body that is no multipart", async () => {
    const bytes = encode([field("a")]);
    await assert.rejects(readAll(bytes, "multipart/form-data"), isInvalid(/boundary/));
    await assert.rejects(readAll(bytes, "multipart/form-data; boundary="), isInvalid(/boundary/));
    await assert.rejects(readAll(bytes, "text/plain; boundary=x"), isInvalid(/not multipart/));
    await assert.rejects(readAll(bytes, ""), isInvalid(/not multipart/));
  });

  test("a cut-off body fails wherever the cut is, and never looks complete", async () => {
    const bytes = encode([field("a", "hello"), field("b", "world")]);
    for (let length = 0; length < bytes.length - 2; length += 1) {
      await assert.rejects(readAll(bytes.subarray(0, length)), isInvalid(/closing boundary/), `after ${length} bytes`);
    }
  });

  test("a reader of the part that is cut off gets the bytes that came, then the error", async () => {
    const bytes = encode([field("a", "hello world")]);
    const got: string[] = [];
    await assert.rejects(
      async () => {
        for await (const part of readParts(
          chunks(bytes.subarray(0, bytes.length - 60), () => 4),
          contentType,
        )) {
          for await (const piece of part.body) got.push(piece.toString());
        }
      },
      isInvalid(/closing boundary/),
    );
    assert.ok("hello world".startsWith(got.join("")));
  });

  test("a malformed part header is refused", async () => {
    await assert.rejects(readAll(encode([{ head: "No colon\tno header", body: "" }])), isInvalid(/malformed/));
    await assert.rejects(readAll(encode([{ head: ": empty", body: "" }])), isInvalid(/malformed/));
  });

  test("the error of the source reaches the reader unchanged", async () => {
    async function* broken() {
      yield encode([field("a", "x".repeat(100))]).subarray(0, 120);
      throw new ModhostError("BODY_ABORTED");
    }
    const read = async () => {
      for await (const part of readParts(broken(), contentType)) await part.bytes();
    };
    await assert.rejects(read, { code: "BODY_ABORTED" });
  });
});

describe("limits of multipart bodies", () => {
  const count = async (bytes: Buffer, limits: Parameters<typeof readParts>[2], size = 65_536) => {
    let parts = 0;
    for await (const part of readParts(
      chunks(bytes, () => size),
      contentType,
      limits,
    )) {
      await part.bytes();
      parts += 1;
    }
    return parts;
  };

  test("the number of parts: 1,000 unless set, and exactly the limit is accepted", async () => {
    const many = (length: number) => encode(Array.from({ length }, (_, at) => field(`f${at}`)));
    assert.equal(await count(many(1000), {}), 1000);
    await assert.rejects(count(many(1001), {}), isInvalid(/more than 1000 parts/));
    await assert.rejects(count(many(3), { parts: 2 }), isInvalid(/more than 2 parts/));
  });

  test("the bytes of a part's header, however they arrive", async () => {
    const bytes = encode([{ head: `X-Long: ${"x".repeat(20_000)}`, body: "" }]);
    await assert.rejects(count(bytes, {}), isInvalid(/header of part 1 is larger than 16384/));
    await assert.rejects(count(bytes, {}, 100), isInvalid(/header of part 1/));
    assert.equal(await count(bytes, { header_bytes: 30_000 }), 1);
  });

  test("the bytes of a part, read or skipped: BODY_TOO_LARGE", async () => {
    const bytes = encode([field("small"), field("big", "x".repeat(1001))]);
    const isTooLarge = (error: unknown) =>
      ModhostError.is(error) && error.code === "BODY_TOO_LARGE" && error.status === 413;
    await assert.rejects(count(bytes, { part_bytes: 1000 }), isTooLarge);
    assert.equal(await count(bytes, { part_bytes: 1001 }), 2);
    await assert.rejects(async () => {
      for await (const _ of readParts(
        chunks(bytes, () => 64),
        contentType,
        { part_bytes: 1000 },
      ));
    }, isTooLarge);
  });
});
