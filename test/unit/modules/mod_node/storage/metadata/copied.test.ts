import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CopiedMetadata } from "#node/storage/metadata/copied.ts";
import { copyHeader, readCopy, writeCopy } from "#node/storage/metadata/copy_file.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { eventually } from "#test/support/eventually.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { metadataContract } from "./contract.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const put = (store: MetadataStore, ...keys: readonly string[]) =>
  store.transaction((writer) => {
    for (const key of keys) writer.put(key, bytes(`of ${key}`));
  });
const keysIn = async (path: string) => (await Array.fromAsync(readCopy(path))).map(([key]) => key);

metadataContract("copied", () => CopiedMetadata.open(memoryMetadata(), { path: join(tmpdir(), "nothing", "copy") }));

test("a copy has all important entries, and is written again only when these have changed", async (t) => {
  const path = join(await emptyFolder(t), "copy");
  const inner = memoryMetadata();
  const store = await CopiedMetadata.open(inner, { path });
  await put(store, "pins/a", "peers/b", "routing/c", "files/root");
  await store.copy();
  const first = await readFile(path, "utf8");
  assert.deepEqual(await keysIn(path), ["files/root", "pins/a"]);
  await put(store, "peers/d");
  await store.compareAndSet("routing/c", bytes("of routing/c"), undefined);
  await store.copy();
  const again = await CopiedMetadata.open(inner, { path });
  await again.copy();
  assert.equal(await readFile(path, "utf8"), first);
  assert.equal(await store.compareAndSet("pins/a", bytes("of pins/a"), undefined), true);
  await store.close();
  assert.deepEqual(await keysIn(path), ["files/root"]);
  assert.notEqual((await copyHeader(path))?.id, JSON.parse(first.split("\n")[0] ?? "").id);
});

test("a copy that is behind after a crash is recognized", async (t) => {
  const path = join(await emptyFolder(t), "copy");
  const inner = memoryMetadata();
  const store = await CopiedMetadata.open(inner, { path });
  await put(store, "pins/a");
  await store.copy();
  await put(store, "pins/b");
  // The process ends here.
  const again = await CopiedMetadata.open(inner, { path });
  await again.close();
  assert.deepEqual(await keysIn(path), ["pins/a", "pins/b"]);
});

test("changes during a copy are in the next one, which is made automatically", async (t) => {
  const path = join(await emptyFolder(t), "copy");
  const inner = memoryMetadata();
  const range = inner.range.bind(inner);
  let store: CopiedMetadata | undefined;
  let meanwhile: Promise<void> | undefined;
  inner.range = async function* (bounds) {
    const entries = await Array.fromAsync(range(bounds));
    meanwhile ??= put(store as CopiedMetadata, "pins/b");
    await meanwhile;
    yield* entries;
  };
  store = await CopiedMetadata.open(inner, { path, delayMs: 5 });
  await put(store, "pins/a");
  await eventually("both keys are copied", async () => (await keysIn(path).catch(() => [])).length >= 2);
  await store.close();
});

test("a copy is either whole or refused, whatever its keys contain", async (t) => {
  const path = join(await emptyFolder(t), "copy");
  const keys = ["a\u2028b\r\nc", "é\u0000", "x".repeat(70_000)];
  async function* entries() {
    for (const key of keys) yield [key, bytes(key)] as const;
  }
  await writeCopy(path, { id: "1", made: "now" }, entries());
  assert.deepEqual(
    (await Array.fromAsync(readCopy(path))).map(([key, value]) => [key, Buffer.from(value).toString()]),
    keys.map((key) => [key, key]),
  );
  const whole = await readFile(path, "utf8");
  const refused: readonly (readonly [string, RegExp])[] = [
    ["", /its end is missing/],
    [whole.slice(0, -80), /its end is missing/],
    [whole.split("\n").slice(0, -2).join("\n"), /its end is missing/],
    [whole.replace("x", "y"), /its checksum does not fit/],
    [whole.split("\n").toSpliced(1, 1).join("\n"), /its checksum does not fit/],
    [whole.replace('"1"', "1"), /its header is missing/],
  ];
  for (const [text, message] of refused) {
    await writeFile(path, text);
    await assert.rejects(keysIn(path), { message });
  }
});

test("a failure of copying is reported once and stops nothing else", async (t) => {
  const path = join(await emptyFolder(t), "missing", "copy");
  const notices: string[] = [];
  const store = await CopiedMetadata.open(memoryMetadata(), { path, onNotice: (sentence) => notices.push(sentence) });
  await put(store, "pins/a");
  await store.copy();
  await store.copy();
  await store.close();
  assert.equal(notices.length, 1);
  assert.match(String(notices), /^cannot write the copy of pins and roots to .*: ENOENT/);
});
