/** Contents of parts that look like boundaries arrive unchanged, and cost no more than others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MultipartParser } from "formidable";
import { OpeningParser } from "#core/http/message/multipart/opening_parser.ts";

const head = (name: string) => `--edge\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`;

/**
 * Parses a body that arrives in chunks of one size. Returns the name of each part with its
 * contents.
 */
function partsOf(body: Buffer, size: number): { readonly texts: string[]; readonly complete: boolean } {
  const parser = new OpeningParser("edge", {});
  for (let at = 0; at < body.length; at += size) parser.feed(Buffer.from(body.subarray(at, at + size)));
  const texts: string[] = [];
  for (const piece of parser.pieces) {
    if (piece.kind === "part") texts.push(`${piece.headers.content_disposition}: `);
    else if (piece.kind === "data") texts.push(texts.pop() + piece.bytes.toString("latin1"));
  }
  return { texts, complete: parser.complete };
}

test("contents arrive as they were sent, however the body is cut", () => {
  const contents = [
    "",
    "plain",
    "\r\n--edg",
    "\r\n--edgeX",
    "\r\n--edge-X",
    "\r\n--edge X",
    "\r\n--edge\rX",
    `${"\r".repeat(30)}\n`,
    "\r\n".repeat(30),
    "\r\n--".repeat(30),
    "x".repeat(5000),
    "a\r\n\r\nb\r\n-",
  ];
  const body = Buffer.from(`${contents.map((text, at) => `${head(`p${at}`)}${text}\r\n`).join("")}--edge--\r\n`);
  const sent = contents.map((text, at) => `form-data; name="p${at}": ${text}`);
  for (const size of [1, 2, 3, 7, 11, 64, 1000, body.length]) {
    assert.deepEqual(partsOf(body, size), { texts: sent, complete: true }, `in pieces of ${size}`);
  }
});

test("only boundaries and headers are parsed byte by byte, whatever the contents are", (t) => {
  const { _transform: transform } = MultipartParser.prototype as unknown as Record<string, (chunk: Buffer) => void>;
  let looked = 0;
  t.mock.method(
    MultipartParser.prototype as never,
    "_transform" as never,
    function (this: never, ...values: [Buffer]) {
      looked += values[0].length;
      return transform?.apply(this, values);
    } as never,
  );
  const units = [
    "\0",
    "\r",
    "\n",
    "\r\n",
    "-",
    "\r\n--",
    "\r\n--edg",
    "\r\n--edgeX",
    "\r\n--edge-X",
    "\r\n--edge X",
    "\r\r\n-",
  ];
  for (const unit of units) {
    const content = unit.repeat(100_000 / unit.length);
    looked = 0;
    const { texts, complete } = partsOf(Buffer.from(`${head("a")}${content}\r\n--edge--\r\n`), 16_384);
    assert.equal(complete && texts[0] === `form-data; name="a": ${content}`, true, JSON.stringify(unit));
    assert.ok(looked < 100, `${JSON.stringify(unit)}: ${looked} bytes`);
  }
});
