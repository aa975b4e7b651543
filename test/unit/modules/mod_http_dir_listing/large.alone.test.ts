/** Listings of folders with more entries than are shown, and of many clients at once. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import listing from "#modules/mod_http_dir_listing/index.ts";
import files from "#modules/mod_http_files/index.ts";
import { Harness } from "#test/unit/modules/harness.ts";

const folder = await mkdtemp(join(tmpdir(), "modhost-large-"));
const www = join(folder, "www");
const count = 1200;
await mkdir(join(www, "many"), { recursive: true });
await mkdir(join(www, "few/zoo"), { recursive: true });
await mkdir(join(www, "none"));
const nameOf = (at: number) => `file-${String(at).padStart(4, "0")}`;
// Created in random order, because folders do not keep names sorted.
const numbers = Array.from({ length: count }, (_, at) => (at * 7) % count);
await Promise.all(numbers.map((at) => writeFile(join(www, "many", nameOf(at)), "")));
for (const name of ["B", "a", "C", ".hidden"]) await writeFile(join(www, "few", name), "");
await symlink("zoo", join(www, "few/Yard"));
await symlink("/", join(www, "few/A-leak"));

/** Records the calls of serve-index, with the number of names in each. */
const sizes: number[] = [];
const library = createRequire(import.meta.url)("serve-index") as { html: (...values: unknown[]) => void };
const { html } = library;
/** Resolves when the read begins. */
let begin: Promise<unknown> = Promise.resolve();
library.html = (...values) => {
  sizes.push((values[2] as string[]).length);
  void begin.then(() => html(...values));
};
afterEach(() => {
  sizes.length = 0;
});

const option: { http_dir_listing_entries?: number } = {};
const server = await new Harness().start();
const { serve } = files(server.module("http_files", { http_files_dir: www, http_dir_listing: true }));
listing(server.module("http_dir_listing", option));
server.module("http_own").provides("http", { route: { "GET /*": serve({ path: www, directory_index: true }) } });
after(async () => {
  library.html = html;
  await server.stop();
  await rm(folder, { recursive: true });
});

const get = async (path: string, accept: string) => (await server.fetch(path, { accept })).text;
const namesIn = (text: string) => (JSON.parse(text) as { name?: string }[]).flatMap(({ name }) => name ?? []);

describe("a folder with more entries than are shown", () => {
  test("lists the first entries in its order, and says in every format how many there are", async () => {
    option.http_dir_listing_entries = 1100;
    const first = Array.from({ length: 1100 }, (_, at) => nameOf(at));
    for (const app of ["files", "own"]) {
      const json = await get(`/${app}/many/`, "application/json");
      assert.deepEqual(namesIn(json), first);
      const note = "the first 1,100 of 1,200 entries";
      assert.deepEqual(JSON.parse(json).at(-1), { type: "cut", note, shown: 1100, total: 1200 });
      assert.equal(await get(`/${app}/many/`, "text/plain"), `${first.join("\n")}\n/... ${note}\n`);
      const page = await get(`/${app}/many/`, "text/html");
      assert.equal(page.match(/<time /g)?.length, 1100);
      assert.match(page, /<p>The first 1,100 of 1,200 entries<\/p>/);
    }
  });

  test("shows folders and links to folders first, and does not count entries that may not be shown", async () => {
    const seen = [];
    for (let entries = 1; entries <= 6; entries += 1) {
      option.http_dir_listing_entries = entries;
      seen.push((await get("/files/few/", "text/plain")).replaceAll("\n", " "));
    }
    assert.deepEqual(seen, [
      "Yard/ /... the first 1 of 5 entries ",
      "Yard/ zoo/ /... the first 2 of 5 entries ",
      "Yard/ zoo/ a /... the first 3 of 5 entries ",
      "Yard/ zoo/ a B /... the first 4 of 5 entries ",
      "Yard/ zoo/ a B C ",
      "Yard/ zoo/ a B C ",
    ]);
  });

  test("has no note when the listing is complete or empty", async () => {
    delete option.http_dir_listing_entries;
    assert.equal(namesIn(await get("/files/many/", "application/json")).length, count);
    assert.match(await get("/files/many/", "text/html"), /<p>1200 entries<\/p>/);
    assert.equal(await get("/files/none/", "application/json"), "[]\n");
    assert.equal(await get("/files/none/", "text/plain"), "");
    assert.match(await get("/files/none/", "text/html"), /<p>0 entries<\/p>/);
  });
});

describe("concurrent requests for a folder", () => {
  test("share one read of the folder, in bounded pieces and in every format", async () => {
    delete option.http_dir_listing_entries;
    const accepts = ["text/html", "application/json", "text/plain"];
    const clients = 40;
    const allAsk = Promise.withResolvers<void>();
    begin = allAsk.promise;
    let pending = 0;
    const remove = server.bus.add(
      "directory-index",
      () => {
        pending += 1;
        if (pending === clients) setImmediate(allAsk.resolve);
        return undefined;
      },
      1,
    );
    const responses = await Promise.all(
      Array.from({ length: clients }, (_, at) => server.fetch("/files/many/", { accept: accepts[at % 3] as string })),
    );
    remove();
    for (const [at, { status, headers, text }] of responses.entries()) {
      assert.deepEqual([status, headers["x-content-type-options"]], [200, "nosniff"]);
      assert.equal(text, responses[at % 3]?.text);
    }
    assert.deepEqual(sizes, [500, 500, 200]);
  });

  test("are not cached: a later request shows new entries", async () => {
    const fresh = join(www, "fresh");
    await mkdir(fresh);
    assert.equal(await get("/files/fresh/", "text/plain"), "");
    await writeFile(join(fresh, "new"), "");
    assert.equal(await get("/files/fresh/", "text/plain"), "new\n");
  });
});
