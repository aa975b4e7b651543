import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { open, readdir, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openLmdbMetadata } from "#node/storage/metadata/lmdb.ts";
import { metadataContract } from "./contract.ts";

const home = mkdtempSync(join(tmpdir(), "modhost-metadata-"));
after(() => rm(home, { recursive: true }));
let folders = 0;
// A dot in the name must not turn the folder into a file.
const folder = () => join(home, `store.${++folders}`, "metadata");

metadataContract("lmdb", () => openLmdbMetadata(folder()));

const bytes = (text: string) => new TextEncoder().encode(text);

test("entries exist when the store is opened again", async () => {
  const at = folder();
  const first = await openLmdbMetadata(at);
  await first.transaction((writer) => writer.put("k", bytes("v")));
  await first.close();
  const second = await openLmdbMetadata(at);
  assert.deepEqual(await second.get("k"), bytes("v"));
  await second.close();
});

test("closing a store writes the waiting transactions", async () => {
  const at = folder();
  const first = await openLmdbMetadata(at);
  const acknowledgedKeys = Promise.all(
    ["a", "b"].map((key) => first.transaction((writer) => writer.put(key, bytes(key)))),
  );
  await first.close();
  await acknowledgedKeys;
  const second = await openLmdbMetadata(at);
  assert.deepEqual(await Promise.all(["a", "b"].map((key) => second.get(key))), [bytes("a"), bytes("b")]);
  await second.close();
});

test("an acknowledged transaction survives kill -9", async () => {
  const at = folder();
  const child = fork(fileURLToPath(new URL("killed.ts", import.meta.url)), [at], { execArgv: ["--conditions=source"] });
  const acknowledgedKeys: number[] = [];
  child.on("message", (count: number) => {
    acknowledgedKeys.push(count);
    if (count === 40) child.kill("SIGKILL");
  });
  await once(child, "exit");
  const store = await openLmdbMetadata(at);
  for (const count of acknowledgedKeys) assert.ok(await store.has(`key-${count}`), `key-${count}`);
  await store.close();
});

test("a damaged store is reported, and the process continues", async () => {
  const damages: Record<string, (file: string, size: number) => Promise<void>> = {
    "cut in half": (file, size) => truncate(file, size / 2),
    "written over": async (file, size) => {
      const handle = await open(file, "r+");
      await handle.write(Buffer.alloc(size - 8192, 0xa5), 0, size - 8192, 8192);
      await handle.close();
    },
  };
  for (const [name, damage] of Object.entries(damages)) {
    const at = folder();
    const store = await openLmdbMetadata(at);
    await store.transaction((writer) => {
      for (let count = 0; count < 2000; count += 1) writer.put(`key-${count}`, new Uint8Array(100));
    });
    await store.close();
    const file = join(at, (await readdir(at)).find((entry) => entry === "data.mdb") as string);
    await damage(file, (await stat(file)).size);
    await assert.rejects(openLmdbMetadata(at), { code: "STORE_BROKEN" }, name);
  }
});
