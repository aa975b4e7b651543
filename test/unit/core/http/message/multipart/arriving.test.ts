import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { readParts } from "#core/http/message/multipart/parts.ts";
import { boundary, Counted, chunks, contentType, encode, field, readAll } from "./samples.ts";

describe("content that is full of beginnings of a boundary", () => {
  const repeated = {
    "carriage returns": "\r",
    "empty lines": "\r\n",
    "boundaries without their last letter": `\r\n--${boundary.slice(0, -1)}`,
    "boundaries with a letter more": `\r\n--${boundary}x`,
    "boundaries with bare line feeds": `\n--${boundary}x`,
  };
  for (const [what, unit] of Object.entries(repeated)) {
    for (const lines of ["\r\n", "\n"]) {
      test(`${what} arrive whole and in few pieces, between lines that end with ${JSON.stringify(lines)}`, async () => {
        const content = unit.repeat(Math.ceil(100_000 / unit.length));
        const text = [`--${boundary}`, 'Content-Disposition: form-data; name="f"', "", content, `--${boundary}--`];
        const bytes = Buffer.from(text.join(lines));
        const pieces: Buffer[] = [];
        const source = chunks(bytes, () => 10_000);
        for await (const part of readParts(source, contentType)) {
          for await (const piece of part.body) pieces.push(piece);
        }
        assert.ok(Buffer.concat(pieces).toString() === content);
        assert.ok(pieces.length < 30, `${pieces.length} pieces`);
      });
    }
  }
});

describe("reading multipart bodies as they arrive", () => {
  const chunk = Buffer.alloc(65_536, "z");

  function* longBody(count: number): Generator<Buffer> {
    yield Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n`);
    for (let at = 0; at < count; at += 1) yield chunk;
    yield Buffer.from(`\r\n--${boundary}--\r\n`);
  }

  test("a slow reader slows the source down: at most one chunk waits", async () => {
    const source = new Counted(longBody(200));
    let given = 0;
    let most = 0;
    for await (const part of readParts(source, contentType)) {
      for await (const piece of part.body) {
        given += piece.length;
        await setImmediate();
        most = Math.max(most, source.taken - given);
      }
    }
    assert.equal(given, 200 * chunk.length);
    assert.ok(most < 2 * chunk.length, `${most} bytes waited`);
  });

  test("the source is not read before the first part is requested", async () => {
    const source = new Counted(longBody(5));
    readParts(source, contentType);
    await setImmediate();
    assert.equal(source.taken, 0);
  });

  test("the unread rest of a part is skipped when the next part is requested", async () => {
    const bytes = encode([field("a", "x".repeat(5000)), field("b", "y"), field("c", "z".repeat(5000))]);
    const names: (string | undefined)[] = [];
    for await (const part of readParts(
      chunks(bytes, () => 100),
      contentType,
    )) {
      names.push(part.name);
      if (part.name === "c") for await (const _ of part.body) break;
    }
    assert.deepEqual(names, ["a", "b", "c"]);
  });

  test("a text() call that was not awaited is complete when the next part arrives", async () => {
    const pending: Promise<string>[] = [];
    const bytes = encode([field("a", "first"), field("b", "second")]);
    for await (const part of readParts(
      chunks(bytes, () => 2),
      contentType,
    ))
      pending.push(part.text());
    assert.deepEqual(await Promise.all(pending), ["first", "second"]);
  });

  test("reading a part too late, or twice, fails and says why", async () => {
    const retained: { text(): Promise<string> }[] = [];
    for await (const part of readParts(
      chunks(encode([field("a"), field("b")]), () => 5),
      contentType,
    ))
      retained.push(part);
    await assert.rejects(retained[0]?.text() ?? Promise.resolve(""), /skipped/);
    for await (const part of readParts(
      chunks(encode([field("a")]), () => 5),
      contentType,
    )) {
      await part.text();
      await assert.rejects(part.text(), /once/);
    }
  });

  test("leaving the loop stops reading the source", async () => {
    const source = new Counted(longBody(100));
    for await (const part of readParts(source, contentType)) {
      for await (const _ of part.body) break;
      break;
    }
    assert.equal(source.returned, true);
    assert.ok(source.taken < 3 * chunk.length);
  });

  test("an epilogue without end is not read to its end", async () => {
    function* endless(): Generator<Buffer> {
      yield encode([field("a")]);
      for (;;) yield chunk;
    }
    const source = new Counted(endless());
    for await (const part of readParts(source, contentType)) await part.text();
    assert.equal(source.returned, true);
  });

  test("an aborted signal ends a read that waits for the client", { timeout: 60_000 }, async () => {
    const abort = new AbortController();
    async function* stalled() {
      yield encode([field("a", "x".repeat(100))]).subarray(0, 100);
      abort.abort(new Error("gone"));
      await new Promise(() => {});
    }
    const read = async () => {
      for await (const part of readParts(stalled(), contentType, {}, abort.signal)) await part.bytes();
    };
    await assert.rejects(read, /gone/);
  });

  test("nothing is written to the folder for temporary files", async () => {
    const before = new Set(await readdir(tmpdir()));
    await readAll(
      encode([{ head: 'Content-Disposition: form-data; name="f"; filename="unlikely-name.bin"', body: chunk }]),
    );
    const added = (await readdir(tmpdir())).filter(
      (name) => !before.has(name) && /^[a-z0-9]{20,30}$|unlikely/.test(name),
    );
    assert.deepEqual(added, []);
  });
});
