import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Header, pack } from "tar-stream";
import { readTar, type TarEntry } from "#modules/mod_http_api/cli/rpc/tar.ts";

async function packed(headers: readonly Partial<Header>[], content = "content"): Promise<Buffer> {
  const archive = pack();
  for (const header of headers) {
    const whole = { name: "x", ...header };
    if ((header.type ?? "file") === "file") archive.entry(whole, content);
    else archive.entry(whole);
  }
  archive.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of archive) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** Yields pieces of a length that matches no boundary. */
async function* pieces(whole: Buffer, length = 100): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += length) yield whole.subarray(at, at + length);
}

async function read(whole: Buffer): Promise<(Omit<TarEntry, "body"> & { content: string })[]> {
  const found = [];
  for await (const { body, ...entry } of readTar(pieces(whole))) {
    let content = "";
    for await (const piece of body) content += Buffer.from(piece).toString();
    found.push({ ...entry, content });
  }
  return found;
}

describe("tar archives", () => {
  test("names, kinds, modes and contents are read as they were packed", async () => {
    const long = `${"folder/".repeat(40)}ü`;
    const entries = await read(
      await packed([
        { name: "d/", type: "directory", mode: 0o755 },
        { name: "d/file", mode: 0o640 },
        { name: "d/link", type: "symlink", linkname: "../elsewhere" },
        { name: `${"p".repeat(90)}/${"n".repeat(60)}` },
        { name: long },
        { name: "l", type: "symlink", linkname: long },
        { name: "f", type: "fifo" },
      ]),
    );
    const text = (binary: string) => Buffer.from(binary, "latin1").toString();
    const shown = entries.map(({ name, type, linkname, content }) => [text(name), type, text(linkname), content]);
    assert.deepEqual(shown, [
      ["d/", "directory", "", ""],
      ["d/file", "file", "", "content"],
      ["d/link", "symlink", "../elsewhere", ""],
      [`${"p".repeat(90)}/${"n".repeat(60)}`, "file", "", "content"],
      [long, "file", "", "content"],
      ["l", "symlink", long, ""],
      ["f", "fifo", "", ""],
    ]);
    assert.equal(entries[1]?.mode, 0o640);
  });

  test("unread content of an entry is skipped, and the source is read to its end", async () => {
    const whole = Buffer.concat([await packed([{ name: "a" }, { name: "b" }], "x".repeat(5000)), Buffer.alloc(3000)]);
    let given = 0;
    const counted = async function* () {
      for await (const piece of pieces(whole)) {
        given += piece.length;
        yield piece;
      }
    };
    const names: string[] = [];
    for await (const { name } of readTar(counted())) names.push(name);
    assert.deepEqual([names, given], [["a", "b"], whole.length]);
  });

  test("GNU's long names are supported", async () => {
    const name = "n".repeat(200);
    const first = await packed([{ name: "././@LongLink" }], `${name}\0`);
    const second = await packed([{ name: "cut" }]);
    first[156] = "L".charCodeAt(0);
    let sum = 8 * 32;
    for (let at = 0; at < 512; at++) if (at < 148 || at >= 156) sum += first[at] as number;
    first.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    const [entry] = await read(Buffer.concat([first.subarray(0, 1024), second]));
    assert.deepEqual([entry?.name, entry?.content], [name, "content"]);
  });

  test("a truncated, damaged or foreign archive is an error, unlike one that ended", async () => {
    const whole = await packed([{ name: "a" }], "x".repeat(2000));
    assert.equal((await read(whole.subarray(0, 512 + 2048))).length, 1);
    await assert.rejects(read(whole.subarray(0, 1000)), { message: "The archive ends too early" });
    await assert.rejects(read(whole.subarray(0, 300)), { message: "The archive ends too early" });
    const damaged = Buffer.from(whole);
    damaged[3] = 1;
    await assert.rejects(read(damaged), { message: "This is not a tar archive, or it is damaged" });
    await assert.rejects(read(Buffer.alloc(512, "{")), { message: /damaged/ });
  });
});
