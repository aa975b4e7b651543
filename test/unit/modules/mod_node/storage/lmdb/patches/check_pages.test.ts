import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { cp, open, readFile, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openEnvironment } from "#node/storage/lmdb/open.ts";
import { checkPages } from "#node/storage/lmdb/patches/check_pages.ts";
import { installedVersion, LMDB_VERSION, whyUnchecked } from "#node/storage/lmdb/patches/layout.ts";

const root = new URL("../../../../../../../", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "modhost-lmdb-"));
after(() => rm(home, { recursive: true }));

const dataOf = (folder: string) => join(folder, "data.mdb");
const pageSize = 4096;

/**
 * Writes in `rounds` transactions, most of which free pages. Calls `between` with the folder after
 * each.
 */
async function busy(name: string, rounds: number, between = (_folder: string) => {}): Promise<string> {
  const folder = join(home, name);
  const environment = await openEnvironment(folder);
  const tables = [environment.table("one"), environment.table("other")];
  for (let round = 0; round < rounds; round += 1) {
    await environment.write(() => {
      for (let at = 0; at < 60; at += 1) {
        const table = tables[at % 2] as (typeof tables)[0];
        const key = Buffer.from(`key ${(round * 37 + at * 11) % 100}`);
        if ((round + at) % 3 === 0) table.remove(key);
        else table.put(key, Buffer.alloc(at === 1 ? 9000 : 60, at));
      }
    });
    between(folder);
  }
  await environment.close();
  return folder;
}

/**
 * Returns the reports of another process that opens and writes to damaged copies. The process must
 * survive all of them.
 */
async function outcomes(copies: readonly string[]): Promise<readonly string[]> {
  const written = fileURLToPath(new URL("write_and_read.ts", import.meta.url));
  const run = promisify(execFile)(process.execPath, ["--conditions=source", written, ...copies]);
  const { stdout } = await run.catch((error: Error & { signal?: string; stdout: string }) => {
    const which = copies[error.stdout.split("\n").length - 1] as string;
    throw new Error(`${which} ended the process with ${error.signal ?? error.message.slice(-2000)}`);
  });
  return stdout.trim().split("\n");
}

test("the known layout is that of the installed library, which package.json pins", async () => {
  const { optionalDependencies } = JSON.parse(await readFile(new URL("package.json", root), "utf8"));
  assert.equal(installedVersion(), LMDB_VERSION);
  assert.equal(optionalDependencies.lmdb, LMDB_VERSION);
  assert.equal(whyUnchecked(), undefined);
});

test("the check is skipped with a reason for another library version or byte order", () => {
  assert.match(String(whyUnchecked("3.6.0")), /^the library lmdb is 3\.6\.0, .* known for 3\.5\.6 only/);
  assert.match(String(whyUnchecked(LMDB_VERSION, "BE")), /little-endian/);
});

test("a file with another layout is not checked, and the reason is returned", async () => {
  const folder = await busy("layout", 3);
  const file = await open(dataOf(folder), "r+");
  // The data version, in both meta pages.
  for (const page of [0, pageSize]) await file.write(Buffer.of(9), 0, 1, page + 24 + 4);
  await file.close();
  assert.match(String(checkPages(dataOf(folder))), /has an unknown layout/);
});

test("files that LMDB writes pass the check at any time", async () => {
  let looks = 0;
  await busy("whole", 40, (folder) => {
    assert.equal(checkPages(dataOf(folder)), undefined);
    looks += 1;
  });
  assert.equal(looks, 40);
});

/** The page with the list of free pages is the last one. Readers do not need it. */
async function damagedCopies(name: string, damage: (data: string, page: number) => Promise<unknown>) {
  const folder = await busy(name, 3);
  const pages = (await stat(dataOf(folder))).size / pageSize;
  const refused: string[] = [];
  const copies: string[] = [];
  for (let page = 2; page < pages; page += 1) {
    const copy = `${folder}-${page}`;
    await cp(folder, copy, { recursive: true });
    await damage(dataOf(copy), page);
    try {
      checkPages(dataOf(copy));
      copies.push(copy);
    } catch {
      refused.push(copy);
    }
  }
  assert.ok(refused.includes(`${folder}-${pages - 1}`));
  return { accepted: copies, last: `${folder}-${pages - 1}` };
}

test("a file that is truncated at any page is written without harm, or reported as damaged", async () => {
  const { accepted, last } = await damagedCopies("cut", (data, page) => truncate(data, page * pageSize));
  assert.deepEqual(await outcomes([...accepted, last]), [...accepted.map(() => "written"), "damaged"]);
});

test("a lost page anywhere crashes no process", async () => {
  const { accepted, last } = await damagedCopies("lost", async (data, page) => {
    const file = await open(data, "r+");
    await file.write(Buffer.alloc(pageSize, page % 2 === 0 ? 0 : 0xa5), 0, pageSize, page * pageSize);
    await file.close();
  });
  assert.ok(accepted.length > 0, "free pages may contain anything");
  assert.deepEqual(await outcomes([...accepted, last]), [...accepted.map(() => "written"), "damaged"]);
});
