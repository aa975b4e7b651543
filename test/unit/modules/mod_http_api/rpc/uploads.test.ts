import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readParts } from "#core/http/index.ts";
import { type Entry, type FileTree, pathOf, treeOf } from "#modules/mod_http_api/rpc/uploads.ts";
import { multipart, type SentPart } from "../support.ts";

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function tree(parts: readonly SentPart[], options: { cut?: boolean; size?: number } = {}): FileTree {
  const { headers, body } = multipart(parts, options);
  return treeOf(readParts(pieces(body, options.size ?? 65536), headers["Content-Type"]));
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const piece of body) text += Buffer.from(piece).toString();
  return text;
}

/** Returns entries as nested lists. Directories whose name is in `closed` are not entered. */
async function outline(entries: AsyncIterable<Entry>, closed: readonly string[] = []): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const entry of entries) {
    if (entry.kind === "file") all.push([entry.name, await textOf(entry.body)]);
    else if (entry.kind === "symlink") all.push([entry.name, { to: entry.target }]);
    else all.push([`${entry.name}/`, closed.includes(entry.name) ? "closed" : await outline(entry.entries(), closed)]);
  }
  return all;
}

const directory = "application/x-directory";
const file = (filename: string, content = filename): SentPart => ({ filename, content });

describe("the tree of a body", () => {
  const trees: [what: string, parts: SentPart[], expected: unknown[]][] = [
    ["nothing", [], []],
    [
      "files",
      [file("a"), file("b", "")],
      [
        ["a", "a"],
        ["b", ""],
      ],
    ],
    ["a file without a name", [{ content: "x" }], [["", "x"]]],
    [
      "two files without names",
      [{ content: "x" }, { content: "y" }],
      [
        ["", "x"],
        ["", "y"],
      ],
    ],
    ["directories that nobody announced", [file("d/e/f", "x")], [["d/", [["e/", [["f", "x"]]]]]]],
    [
      "announced directories, an empty one too",
      [{ filename: "d", type: directory }, file("d/f", "x"), { filename: "d/e", type: directory }],
      [
        [
          "d/",
          [
            ["f", "x"],
            ["e/", []],
          ],
        ],
      ],
    ],
    [
      "a nested multipart is a directory",
      [{ filename: "d", type: "multipart/form-data; boundary=x" }, file("d/f", "x")],
      [["d/", [["f", "x"]]]],
    ],
    ["symlinks", [{ filename: "l", type: "application/symlink", content: "../a" }], [["l", { to: "../a" }]]],
    [
      "a directory that comes back is another entry",
      [file("foo/a", "1"), file("bar/b", "2"), file("foo/c", "3")],
      [
        ["foo/", [["a", "1"]]],
        ["bar/", [["b", "2"]]],
        ["foo/", [["c", "3"]]],
      ],
    ],
    [
      "inside a directory the order is free",
      [file("d/x/1", "1"), file("d/y", "2"), file("d/x/2", "3")],
      [
        [
          "d/",
          [
            ["x/", [["1", "1"]]],
            ["y", "2"],
            ["x/", [["2", "3"]]],
          ],
        ],
      ],
    ],
    [
      "a name that begins like a directory",
      [file("d/a", "1"), file("dd", "2")],
      [
        ["d/", [["a", "1"]]],
        ["dd", "2"],
      ],
    ],
    [
      "what lies below a file is skipped",
      [file("f", "1"), file("f/x", "2"), file("g", "3")],
      [
        ["f", "1"],
        ["g", "3"],
      ],
    ],
    ["escaped slashes", [file("d%2Ff", "x")], [["d/", [["f", "x"]]]]],
  ];
  for (const [what, parts, expected] of trees) {
    for (const size of [65536, 7, 1]) {
      test(`${what}, ${size} bytes at a time`, async () => {
        assert.deepEqual(await outline(tree(parts, { size }).entries()), expected);
      });
    }
  }

  test("a directory that is skipped takes its files along", async () => {
    const parts = [file("d/a"), file("d/e/b"), file("z", "z")];
    assert.deepEqual(await outline(tree(parts).entries(), ["d"]), [
      ["d/", "closed"],
      ["z", "z"],
    ]);
  });

  test("a file can be skipped", async () => {
    const names: string[] = [];
    for await (const { name } of tree([file("a", "x".repeat(100_000)), file("b")]).entries()) names.push(name);
    assert.deepEqual(names, ["a", "b"]);
  });
});

describe("names", () => {
  const names: [filename: string, path: string][] = [
    ["a%20b+c", "/a b c"],
    ["a%zz+b", "/a%zz+b"],
    ["../../x", "/x"],
    ["/a//b/./c/../d/", "/a/b/d"],
    ["", "/"],
    ["%", "/%"],
    ["%C3%A4", "/ä"],
    ["ä", "/ä"],
  ];
  for (const [filename, path] of names) test(`${filename} is ${path}`, () => assert.equal(pathOf(filename), path));

  test("filename* takes precedence over filename", async () => {
    const headers = { "Content-Disposition": "form-data; filename*=UTF-8''na%C3%AFve" };
    const body = `--b\r\nContent-Disposition: ${headers["Content-Disposition"]}\r\n\r\nx\r\n--b--\r\n`;
    const parts = readParts(pieces(Buffer.from(body), 100), "multipart/form-data; boundary=b");
    assert.deepEqual(await outline(treeOf(parts).entries()), [["naïve", "x"]]);
  });
});

describe("facts that a part states about its file", () => {
  test("a part states the backing path, mode and time of its file", async () => {
    const headers = { Abspath: "/x/y" };
    const name = "file?mode=0644&mtime=-5&mtime-nsecs=7";
    const { abspath, mode, mtime, path } = await tree([{ filename: "d/f", headers, name }, file("g")])
      .entries()
      [Symbol.asyncIterator]()
      .next()
      .then(async ({ value }) => {
        assert.equal(value?.kind, "directory");
        return (await value.entries()[Symbol.asyncIterator]().next()).value;
      });
    assert.deepEqual(
      { abspath, mode, mtime, path },
      { abspath: "/x/y", mode: 0o644, mtime: { seconds: -5, nanoseconds: 7 }, path: "d/f" },
    );
  });

  test("facts in headers of other names are ignored", async () => {
    const headers = { Mode: "0644", Mtime: "5" };
    const one = await tree([{ filename: "f", headers, name: "file" }]).one();
    assert.deepEqual([one.abspath, one.mode, one.mtime], [undefined, undefined, undefined]);
  });

  const times: [query: string, mtime: { seconds: number; nanoseconds: number } | undefined][] = [
    ["mode=rw&mtime=now", undefined],
    ["mode=&mtime=", undefined],
    ["mtime=&mtime-nsecs=7", undefined],
    ["mtime=+5", undefined],
    ["mtime=1e3", undefined],
    ["mtime=5.5", undefined],
    ["mtime=99999999999999999999", undefined],
    ["mode=0644", { seconds: 0, nanoseconds: 0 }],
    ["mtime-nsecs=7", { seconds: 0, nanoseconds: 7 }],
    ["mtime=5&mtime-nsecs=", { seconds: 5, nanoseconds: 0 }],
    ["mtime=5&mtime-nsecs=x", { seconds: 5, nanoseconds: 0 }],
    ["mtime=5&mtime-nsecs=1000000000", { seconds: 6, nanoseconds: 0 }],
    ["mtime=5&mtime-nsecs=-1", { seconds: 4, nanoseconds: 999_999_999 }],
  ];
  for (const [query, mtime] of times) {
    test(`${query} is ${mtime === undefined ? "no time" : `the time ${JSON.stringify(mtime)}`}`, async () => {
      assert.deepEqual((await tree([{ filename: "f", name: `file?${query}` }]).one()).mtime, mtime);
    });
  }

  test("a percent-encoded backing path takes precedence over a plain one", async () => {
    const headers = { Abspath: "/x", "Abspath-Encoded": "%2Fna%C3%AFve" };
    assert.equal((await tree([{ filename: "f", headers }]).one()).abspath, "/naïve");
  });

  test("a part states a type, and an invalid type is an error when the part is reached", async () => {
    const entries = tree([file("a"), { filename: "b", type: "text/plain x" }])
      .entries()
      [Symbol.asyncIterator]();
    assert.equal((await entries.next()).value.name, "a");
    await assert.rejects(entries.next(), { message: "mime: unexpected content after media subtype" });
  });
});

describe("some entries", () => {
  test("some() yields all entries", async () =>
    assert.deepEqual(await outline(tree([file("a"), file("d/b", "b")]).some()), [
      ["a", "a"],
      ["d/", [["b", "b"]]],
    ]));
  test("some() fails if there are no entries", () =>
    assert.rejects(outline(tree([]).some()), { message: "expected a file argument" }));
});

describe("plain files", () => {
  test("plain files are read one after the other", async () =>
    assert.deepEqual(await outline(tree([file("a"), file("b")]).plain("no file")), [
      ["a", "a"],
      ["b", "b"],
    ]));
  test("plain files are required by default", () =>
    assert.rejects(outline(tree([]).plain("no file")), { message: "expected a file argument" }));
  test("a directory after a plain file is refused", async () => {
    const read: string[] = [];
    const all = async () => {
      for await (const { body } of tree([file("a"), file("d/b")]).plain("no file")) read.push(await textOf(body));
    };
    await assert.rejects(all(), { message: "no file" });
    assert.deepEqual(read, ["a"]);
  });
});

describe("one file", () => {
  test("one() returns the first entry", async () =>
    assert.equal(await textOf((await tree([file("a", "x"), file("b")]).one()).body), "x"));
  test("one() fails if there are no entries", () =>
    assert.rejects(tree([]).one(), { message: "expected a file argument" }));
  test("one() refuses a directory", () =>
    assert.rejects(tree([file("d/f")]).one(), { message: "file argument was nil" }));
});

describe("a truncated body", () => {
  test("a truncated body yields the complete entries, then fails", async () => {
    const entries = tree([file("a", "1"), file("b", "half of it")], { cut: true }).entries();
    const seen: string[] = [];
    await assert.rejects(
      async () => {
        for await (const entry of entries) if (entry.kind === "file") seen.push(await textOf(entry.body));
      },
      { message: "multipart: NextPart: EOF" },
    );
    assert.deepEqual(seen, ["1", "half of it"]);
  });

  test("a body without a boundary fails at once", async () => {
    const parts = readParts(pieces(Buffer.from("nothing of that kind"), 5), "multipart/form-data; boundary=b");
    await assert.rejects(treeOf(parts).one(), { message: "multipart: NextPart: EOF" });
  });
});

describe("contents read through passing", () => {
  const content = Buffer.alloc(40_000, "content of several pieces, ");

  /** Reads a piece, and compares it after the next one has arrived. */
  async function read(how: "body" | "passing") {
    const { headers, body } = multipart([{ filename: "f", content }, file("next")], {});
    const source = {
      async *passing() {
        for await (const piece of pieces(Buffer.from(body), 8192)) {
          yield piece;
          piece.fill("!");
        }
      },
    };
    const seen: Uint8Array[] = [];
    const copies: Buffer[] = [];
    for await (const entry of treeOf(readParts(source, headers["Content-Type"])).entries()) {
      if (entry.kind !== "file" || entry.name !== "f") continue;
      for await (const piece of entry[how]) {
        seen.push(piece);
        copies.push(Buffer.from(piece));
      }
    }
    assert.ok(Buffer.concat(copies).equals(content));
    return Buffer.concat(seen).equals(content);
  }

  test("contents read through passing are equal, but their buffers are reused", async () =>
    assert.equal(await read("passing"), false));
  test("contents read through body are stable", async () => assert.equal(await read("body"), true));
});

test("the target of a symlink has a length limit", async () => {
  const link = (length: number) =>
    outline(tree([{ filename: "l", type: "application/symlink", content: "t".repeat(length) }]).entries());
  assert.deepEqual(await link(65_536), [["l", { to: "t".repeat(65_536) }]]);
  await assert.rejects(link(65_537), { message: "the target of a symlink has more than 65536 bytes" });
});
