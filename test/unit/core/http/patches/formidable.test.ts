/** What the host knows of formidable's parser: that it holds for the installed version, and that it can be done without. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { MultipartParser } from "formidable";
import { PieceParser } from "#core/http/multipart_parser.ts";
import {
  ContentSkipper,
  FORMIDABLE_VERSION,
  whyContentIsParsed,
} from "#core/http/patches/formidable/content_skipper.ts";

const manifestOf = async (path: string) => JSON.parse(await readFile(new URL(path, import.meta.url), "utf8"));
const root = "../../../../../";

test("the version that it was written for is pinned and installed", async () => {
  const { dependencies } = await manifestOf(`${root}package.json`);
  const installed = await manifestOf(`${root}node_modules/formidable/package.json`);
  assert.deepEqual([dependencies.formidable, installed.version], [FORMIDABLE_VERSION, FORMIDABLE_VERSION]);
});

describe("the check at the start", () => {
  test("holds for the installed parser", () => {
    assert.equal(whyContentIsParsed(), undefined);
  });

  class Renamed extends MultipartParser {
    get state() {
      return "contents";
    }
    set state(_state: unknown) {
      // Another name is used.
    }
  }
  class Fresh extends MultipartParser {
    get index() {
      return 0;
    }
    set index(_index: unknown) {
      // It is not counted any more.
    }
  }
  for (const [title, Parser] of Object.entries({ Renamed, Fresh })) {
    test(`says what does not hold of another one: ${title}`, () => {
      assert.match(
        whyContentIsParsed(Parser as never) ?? "",
        /formidable is not as its version 3\.5\.4 \(.+\): uploads/,
      );
    });
  }

  test("says so of a parser that throws", () => {
    class Throws {
      readonly state = 0;
      readonly index = 0;
      constructor() {
        throw new Error("no longer made like this");
      }
    }
    assert.match(whyContentIsParsed(Throws as never) ?? "", /\(no longer made like this\)/);
  });
});

test("with it and without it the same pieces come of a body, however it is cut", () => {
  const contents = [
    "",
    "plain",
    "\r\n--edg",
    "\r\n--edgeX",
    `${"\r".repeat(30)}\n`,
    "x".repeat(5000),
    "a\r\n\r\nb\r\n-",
  ];
  const parts = contents.map(
    (text, at) => `--edge\r\nContent-Disposition: form-data; name="p${at}"\r\n\r\n${text}\r\n`,
  );
  const body = Buffer.from(`${parts.join("")}--edge--\r\n`);
  const textsOf = (parser: PieceParser) => {
    const texts: string[] = [];
    for (const piece of parser.pieces) {
      if (piece.kind === "part") texts.push(`${piece.headers.content_disposition}: `);
      else if (piece.kind === "data") texts.push(texts.pop() + piece.bytes.toString("latin1"));
    }
    return texts;
  };
  for (const size of [1, 2, 3, 7, 11, 64, 1000, body.length]) {
    const parsers = [new ContentSkipper("edge", {}), new PieceParser("edge", {})] as const;
    for (let at = 0; at < body.length; at += size) {
      for (const parser of parsers) parser.feed(Buffer.from(body.subarray(at, at + size)));
    }
    const [skipping, plain] = parsers.map(textsOf);
    assert.deepEqual(skipping, plain, `in pieces of ${size}`);
    assert.deepEqual(
      plain,
      contents.map((text, at) => `form-data; name="p${at}": ${text}`),
    );
    assert.ok(parsers.every(({ complete }) => complete));
  }
});
