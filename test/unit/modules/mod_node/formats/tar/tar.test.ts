import assert from "node:assert/strict";
import { test } from "node:test";
import { gnuFormat, paxFormat, plainHeader, readHeader, type TarHeader } from "#node/formats/tar/header.ts";
import { readTar } from "#node/formats/tar/read.ts";
import { type PlainEntry, writeEntry, writeHeader } from "#node/formats/tar/write.ts";
import { entry, packed } from "#test/support/tar.ts";

const text = (bytes: readonly Uint8Array[]) => Buffer.concat(bytes).toString();

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(bytes: Uint8Array, size = 100) {
  const found: { header: TarHeader; body: string }[] = [];
  for await (const { header, body } of readTar(pieces(bytes, size))) {
    found.push({ header, body: text(await Array.fromAsync(body)) });
  }
  return found;
}

const long = "d".repeat(90);
const entries = [
  { name: "a.txt", body: "hello\n", mode: 0o600, uid: 1000, gid: 5, uname: "user", gname: "group" },
  { name: "dir/", type: "directory" as const, mode: 0o755 },
  { name: "dir/link", type: "symlink" as const, linkname: "../a.txt" },
  { name: `${long}/${long}/file`, body: "x".repeat(513) },
  { name: `${long}${long}/ümlaut 漢`, body: "long" },
  { name: "to", type: "symlink" as const, linkname: `${long}${long}` },
];

test("archives of tar-stream are read, whatever the size of the pieces in which they arrive", async () => {
  const archive = await packed(entries);
  for (const size of [1, 511, 512, 1000, archive.length]) {
    const found = await read(archive, size);
    assert.deepEqual(
      found.map(({ header, body }) => [
        Buffer.from(header.name, "latin1").toString(),
        header.linkname,
        header.type,
        body,
      ]),
      entries.map(({ name, body = "", ...rest }) => {
        const { type = "file", linkname = "" } = rest as { type?: string; linkname?: string };
        return [name, linkname, { file: "0", directory: "5", symlink: "2" }[type], body];
      }),
    );
    const [{ header }] = found as [(typeof found)[number]];
    const { mode, uid, gid, uname, gname, size: length } = header;
    assert.deepEqual(
      { mode, uid, gid, uname, gname, length },
      { mode: 0o600, uid: 1000, gid: 5, uname: "user", gname: "group", length: 6 },
    );
  }
});

test("a header that is written and read again is the same", async () => {
  const base = { ...plainHeader("0", "name"), mtime: { seconds: 1600000000, nanoseconds: 0 }, mode: 0o644 };
  const headers: TarHeader[] = [
    base,
    { ...base, name: `${long}/${long}` },
    { ...base, name: Buffer.from("ü").toString("latin1") },
    { ...base, uid: 3_000_000, uname: "n".repeat(40) },
    { ...base, mtime: { seconds: -5, nanoseconds: 0 }, format: paxFormat },
    { ...base, mtime: { seconds: -5, nanoseconds: 250_000_000 }, format: paxFormat },
    { ...base, atime: { seconds: 7, nanoseconds: 0 }, format: gnuFormat },
    { ...base, name: long + long, uid: -2, format: gnuFormat },
    { ...base, type: "5", name: "d/", size: 9 * 2 ** 30 },
  ];
  for (const header of headers) {
    const found = headerOf(await read(writeHeader(header)));
    const { records: _, format: __, ...rest } = found;
    const { records: ___, format: ____, ...wanted } = header;
    assert.deepEqual(rest, wanted);
    // Writing a second time must change nothing.
    const again = writeHeader(found);
    assert.deepEqual(writeHeader(headerOf(await read(again))), again);
  }
});

test("writeEntry returns the header of writeHeader, whatever the block contained before", () => {
  const at = (seconds: number, nanoseconds = 0) => ({ seconds, nanoseconds });
  const file: PlainEntry = { type: "0", name: "d/a", linkname: "", mode: 0o644, size: 4096, mtime: at(1_700_000_000) };
  const entries: readonly PlainEntry[] = [
    file,
    { ...file, name: "n".repeat(100), size: 8 ** 11 - 1, mtime: at(8 ** 11 - 1), mode: 0o777 },
    { ...file, type: "2", linkname: "t".repeat(100), size: 0 },
    { ...file, type: "5", name: "d/", size: 0 },
    { ...file, name: "", mtime: at(0), mode: 0, size: 0 },
    { ...file, name: "n".repeat(101) },
    { ...file, name: Buffer.from("ü").toString("latin1") },
    { ...file, size: 8 ** 11 },
    file,
  ];
  const block = Buffer.alloc(512, 0xff);
  for (const entry of entries) {
    const header = { ...plainHeader(entry.type, entry.name), ...entry };
    assert.deepEqual(Buffer.from(writeEntry(entry, block)), Buffer.from(writeHeader(header)), JSON.stringify(entry));
  }
});

test("a time that does not fit into the field of an entry gets a PAX record", async () => {
  const entry = { type: "0", name: "a", linkname: "", mode: 0o644, size: 0 } as const;
  for (const mtime of [
    { seconds: 1_600_000_001, nanoseconds: 7 },
    { seconds: -5, nanoseconds: 0 },
    { seconds: 8 ** 11, nanoseconds: 0 },
  ]) {
    const written = writeEntry({ ...entry, mtime }, Buffer.alloc(512));
    assert.equal(written.length, 3 * 512);
    assert.deepEqual(headerOf(await read(written)).mtime, mtime);
  }
});

const headerOf = ([first]: readonly { header: TarHeader }[]) => (first as { header: TarHeader }).header;

test("a header that no format can express is rejected with the reasons", () => {
  const bad = (change: Partial<TarHeader>) => () => writeHeader({ ...plainHeader("0", "n"), ...change });
  assert.throws(bad({ name: "n/" }), {
    message: "archive/tar: cannot encode header: filename may not have trailing slash",
  });
  assert.throws(bad({ type: "x" }), /cannot manually encode/);
  assert.throws(bad({ mode: 8 ** 8, format: 2 }), {
    message: "archive/tar: cannot encode header: Format specifies USTAR; and USTAR cannot encode Mode=16777216",
  });
  assert.throws(bad({ records: new Map([["path", "a\0"]]), name: "a\0" }), /invalid PAX record/);
});

test("a truncated archive is rejected unless only its end is missing", async () => {
  const archive = await packed([{ name: "a", body: "content" }]);
  const whole = 512 + "content".length;
  for (let length = 1; length < archive.length; length += 1) {
    const cut = archive.subarray(0, length);
    const partial = length > 1024 && length % 512 !== 0;
    if (length < whole || partial) await assert.rejects(read(cut), { message: "unexpected EOF" }, `${length}`);
    else assert.equal((await read(cut)).length, 1, `${length}`);
  }
  assert.deepEqual(await read(new Uint8Array()), []);
});

test("bytes that are not a tar archive are rejected with the error text of Go", async () => {
  const header = Buffer.from(writeHeader({ ...plainHeader("0", "a"), size: 3 }));
  const changed = Buffer.from(header);
  changed[0] = 0x62;
  await assert.rejects(read(changed), { message: "archive/tar: invalid tar header" });
  await assert.rejects(read(Buffer.alloc(512, "x")), { message: "archive/tar: invalid tar header" });
  await assert.rejects(read(Buffer.concat([Buffer.alloc(512), header])), {
    message: "archive/tar: invalid tar header",
  });
  assert.throws(() => readHeader(Buffer.alloc(512)), { message: "archive/tar: invalid tar header" });
});

test("hostile headers are rejected with an error", async () => {
  const after = (...parts: Uint8Array[]) => read(Buffer.concat([...parts, writeHeader(plainHeader("0", "a"))]));
  const bad = { message: "archive/tar: invalid tar header" };
  await assert.rejects(after(entry("x", "5 a=\n junk")), bad);
  await assert.rejects(after(entry("x", "99 a=b\n")), bad);
  await assert.rejects(after(entry("x", "0 a=b\n")), bad);
  // The last line has no space. This case once caused an endless loop.
  await assert.rejects(after(entry("x", "6 a=b\n\0\0")), bad);
  await assert.rejects(after(entry("x", "11 size=-x\n")), bad);
  await assert.rejects(after(entry("x", "12 size=-99\n")), bad);
  await assert.rejects(after(entry("x", "25 size=9999999999999999\n")), bad);
  await assert.rejects(after(entry("x", "", { size: 2 ** 31 })), { message: "archive/tar: header field too long" });
  await assert.rejects(after(entry("L", "", { size: 2 ** 31 })), { message: "archive/tar: header field too long" });
  await assert.rejects(after(entry("x", "22 GNU.sparse.major=1\n")), /sparse files are not supported/);
  await assert.rejects(after(entry("S", "")), /sparse files are not supported/);
  const header = headerOf(await after(entry("x", "22 __proto__=polluted\n")));
  assert.equal(header.records.get("__proto__"), "polluted");
});
