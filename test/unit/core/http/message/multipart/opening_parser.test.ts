import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readParts } from "#core/http/message/multipart/parts.ts";
import type { MultipartLimits } from "#core/types.ts";

const type = "multipart/form-data; boundary=b";

async function* pieces(text: string, size: number) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string, size = 65536, limits: MultipartLimits = {}) {
  const parts: [name: string | undefined, body: string][] = [];
  for await (const part of readParts(pieces(text, size), type, limits)) parts.push([part.name, await part.text()]);
  return parts;
}

const field = (name: string) => `Content-Disposition: form-data; name="${name}"`;
const crlf = (text: string) => text.replaceAll("\n", "\r\n");

describe("parts with bare line feeds", () => {
  const bodies: [what: string, text: string, parts: [string | undefined, string][]][] = [
    ["one", `--b\n${field("a")}\n\nbare\n--b--\n`, [["a", "bare"]]],
    [
      "two, with line feeds inside",
      `--b\n${field("a")}\nX: y\n\n\n1\n\n--b\n${field("c")}\n\n2\n--b--`,
      [
        ["a", "\n1\n"],
        ["c", "2"],
      ],
    ],
    [
      "empty ones, with and without the line feed",
      `--b\n${field("a")}\n\n\n--b\n${field("c")}\n\n--b--`,
      [
        ["a", ""],
        ["c", ""],
      ],
    ],
    ["no header", "--b\n\nx\n--b--\n", [[undefined, "x"]]],
    [
      "lines that only look like a boundary",
      `--b\n${field("a")}\n\n--bc\n--b-\n--b x\n--b--\n`,
      [["a", "--bc\n--b-\n--b x"]],
    ],
    [
      "blanks behind the boundary",
      `--b \t\n${field("a")}\n\nx\n--b  \n${field("c")}\n\ny\n--b--`,
      [
        ["a", "x"],
        ["c", "y"],
      ],
    ],
    ["a prologue and an epilogue", `pro\n--bogus\nlogue\n--b\n${field("a")}\n\nx\n--b--\nepilogue`, [["a", "x"]]],
    ["none", "--b--\n", []],
  ];
  for (const [what, text, parts] of bodies) {
    for (const size of [65536, 5, 1]) {
      test(`${what}, ${size} bytes at a time`, async () => assert.deepEqual(await read(text, size), parts));
    }
  }

  test("content of any length arrives whole", async () => {
    const content = "0123456789\n--\n".repeat(20_000);
    assert.deepEqual(await read(`--b\n${field("a")}\n\n${content}\n--b--\n`, 1000), [["a", content]]);
  });

  test("limits are enforced", async () => {
    const text = `--b\n${field("a")}\n\n12345\n--b\n${field("c")}\n\n1\n--b--`;
    await assert.rejects(read(text, 9, { parts: 1 }), { code: "MULTIPART_INVALID" });
    await assert.rejects(read(text, 9, { part_bytes: 4 }), { code: "BODY_TOO_LARGE" });
    await assert.rejects(read(text, 9, { header_bytes: 20 }), { code: "MULTIPART_INVALID" });
  });

  test("a missing end is an error", () =>
    assert.rejects(read(`--b\n${field("a")}\n\nx\n`), {
      code: "MULTIPART_INVALID",
      details: { reason: "it ends before the closing boundary", cut: true },
    }));
});

describe("parts with carriage returns", () => {
  test("are read after a prologue of bare lines", async () => {
    assert.deepEqual(await read(`pro\nlogue\n${crlf(`--b\n${field("a")}\n\nx\n--b--\n`)}`, 3), [["a", "x"]]);
  });

  test("are refused after a prologue without an end", () =>
    assert.rejects(read("x".repeat(100_000), 1000), { code: "MULTIPART_INVALID" }));
});

describe("the forms between parts that RFC 2046 allows", () => {
  const bodies: [what: string, text: string, parts: [string | undefined, string][]][] = [
    [
      "blanks behind each boundary",
      `--b \t\n${field("a")}\n\nx\n--b  \n${field("c")}\n\n\n--b\t\n${field("d")}\n\ny\n--b-- \t\n`,
      [
        ["a", "x"],
        ["c", ""],
        ["d", "y"],
      ],
    ],
    [
      "blanks behind one boundary of several",
      `--b\n${field("a")}\n\n1\n--b \n${field("c")}\n\n2\n--b\n${field("d")}\n\n3\n--b--\n`,
      [
        ["a", "1"],
        ["c", "2"],
        ["d", "3"],
      ],
    ],
    [
      "headers that are folded",
      '--b\nContent-Disposition: form-data;\n name="a"\nX-Long: one\n\ttwo\n  three\n\nx\n--b--\n',
      [["a", "x"]],
    ],
    [
      "a header that is folded behind blanks",
      '--b \nContent-Disposition:\n form-data; name="a"\n\nx\n--b--\n',
      [["a", "x"]],
    ],
    ["no header, behind blanks", "--b  \n\nx\n--b--\n", [[undefined, "x"]]],
  ];
  for (const [what, text, parts] of bodies)
    for (const lines of [text, crlf(text)])
      for (const size of [65536, 7, 5, 3, 2, 1])
        test(`${what}, ${lines === text ? "line feeds" : "CRLF"}, ${size} bytes at a time`, async () =>
          assert.deepEqual(await read(lines, size), parts));

  const content = "--bc\r\n--b-\r\n--b x\r\n--b\t.\r\n\r\n--\r\n-b\r\n folded?\r\n\r";
  for (const size of [65536, 7, 5, 3, 2, 1])
    test(`contents that look like boundaries stay unchanged, ${size} bytes at a time`, async () => {
      const text = `--b \r\n${field("a")}\r\n\r\n${content}\r\n--b--\r\n`;
      assert.deepEqual(await read(text, size), [["a", content]]);
    });

  test("a folded header keeps its blanks", async () => {
    for (const lines of ["X: one\n\ttwo\n  three", "X: one\r\n\ttwo\r\n  three"]) {
      const end = lines.includes("\r") ? "\r\n" : "\n";
      const body = ["--b", lines, "", "x", "--b--", ""].join(end);
      for await (const part of readParts(pieces(body, 3), type)) assert.equal(part.headers.x, "one\ttwo  three");
    }
  });

  test("a first header that begins with a blank is refused", async () => {
    await assert.rejects(read(`--b\r\n ${field("a")}\r\n\r\nx\r\n--b--\r\n`), { code: "MULTIPART_INVALID" });
  });
});
