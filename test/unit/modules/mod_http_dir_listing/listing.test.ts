import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import listing from "#modules/mod_http_dir_listing/index.ts";
import files from "#modules/mod_http_files/index.ts";
import { Harness } from "#test/unit/modules/harness.ts";

let server: Harness;
let folder: string;
const evil = `<img src=x onerror="alert('&')">`;
const modified = new Date("2024-05-06T07:08:09.123Z");

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-listing-"));
  const www = join(folder, "www");
  const content = {
    "b.txt": 3,
    "A.bin": 1_234_567,
    "zoo/x": 1,
    "empty/.dot": 1,
    ".hidden": 1,
    "a:b#c? ü": 0,
    "../outside": 1,
  };
  for (const [name, size] of Object.entries(content)) {
    await mkdir(join(www, name, ".."), { recursive: true });
    await writeFile(join(www, name), Buffer.alloc(size));
  }
  await writeFile(join(www, evil), "");
  await mkdir(join(www, "Docs"));
  await symlink("../outside", join(www, "leak"));
  await symlink("..", join(www, "up"));
  await symlink("nowhere", join(www, "dangling"));
  await symlink("b.txt", join(www, "link"));
  execFileSync("mkfifo", [join(www, "pipe")]);
  for (const name of ["A.bin", "Docs"]) await utimes(join(www, name), modified, modified);

  server = await new Harness().start();
  const { serve } = files(server.module("http_files", { http_files_dir: www, http_dir_listing: true }));
  listing(server.module("http_dir_listing"));
  server.module("http_all").provides("http", {
    route: { "GET /*": serve({ path: www, directory_index: true, hidden: true }) },
  });
});

after(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

const json = async (path: string) => JSON.parse((await server.fetch(path, { accept: "application/json" })).text);
const names = async (path: string) => (await json(path)).map((entry: { name: string }) => entry.name);

describe("a listing", () => {
  test("has folders first, then files by name, and nothing that is hidden, special, dangling or outside", async () => {
    assert.deepEqual(await names("/files/"), ["Docs", "empty", "zoo", evil, "a:b#c? ü", "A.bin", "b.txt", "link"]);
  });

  test("has hidden names if hidden files are served", async () => {
    assert.ok((await names("/all/")).includes(".hidden"));
    assert.deepEqual(await names("/all/empty/"), [".dot"]);
    assert.deepEqual(await names("/files/empty/"), []);
  });
});

describe("the format of a listing", () => {
  test("as JSON has name, type, size and date", async () => {
    const entries = await json("/files/");
    assert.deepEqual(entries[0], { name: "Docs", type: "directory", modified: modified.toISOString() });
    const file = entries.find((entry: { name: string }) => entry.name === "A.bin");
    assert.deepEqual(file, { name: "A.bin", type: "file", size: 1_234_567, modified: modified.toISOString() });
  });

  test("as plain text has one name per line", async () => {
    const { text, headers } = await server.fetch("/files/zoo/", { accept: "text/plain" });
    assert.deepEqual([text, headers["content-type"], headers.vary], ["x\n", "text/plain; charset=utf-8", "Accept"]);
    assert.match((await server.fetch("/files/", { accept: "text/plain" })).text, /^Docs\/\nempty\/\n/);
  });

  test("is the page by default", async () => {
    for (const accept of ["text/html,application/xhtml+xml,*/*;q=0.8", "*/*", "image/png", "nonsense"]) {
      const { status, headers } = await server.fetch("/files/", { accept });
      assert.deepEqual([status, headers["content-type"]], [200, "text/html; charset=utf-8"], accept);
    }
    assert.equal((await server.fetch("/files/")).headers["content-type"], "text/html; charset=utf-8");
  });

  test("has the same headers for HEAD as the page", async () => {
    const head = await server.fetch("/files/", {}, "HEAD");
    assert.deepEqual([head.status, head.body.length], [200, 0]);
    assert.equal(head.headers["content-length"], (await server.fetch("/files/")).headers["content-length"]);
  });
});

describe("the page of a listing", () => {
  const page = async (path: string) => (await server.fetch(path, { accept: "text/html" })).text;

  test("escapes names and encodes links", async () => {
    const text = await page("/files/");
    assert.ok(!text.includes("<img"));
    assert.ok(text.includes("&#60;img src=x onerror=&#34;alert(&#39;&#38;&#39;)&#34;&#62;</a>"));
    assert.ok(text.includes(`href="./${encodeURIComponent(evil)}"`) || text.includes('href="./%3Cimg'));
    assert.ok(text.includes('href="./a%3Ab%23c%3F%20%C3%BC"'));
    assert.ok(text.includes('href="./Docs/"'));
  });

  test("has links that lead to what they name", async () => {
    const text = await page("/files/");
    const links = [...text.matchAll(/href="([^"]+)"/g)].map(
      ([, href = ""]) => new URL(href, "http://x/files/").pathname,
    );
    assert.equal(links.length, 8);
    for (const link of links) assert.equal((await server.fetch(link)).status, 200, link);
  });

  test("shows sizes and dates for people and for programs", async () => {
    const text = await page("/files/");
    assert.match(text, /title="1234567 bytes">1\.2 MB</);
    assert.match(text, /<time datetime="2024-05-06T07:08:09\.123Z">2024-05-06 <span>07:08</);
  });

  test("links to the parent only if that is served, too", async () => {
    assert.ok(!(await page("/files/")).includes('href="../"'));
    assert.ok((await page("/files/zoo/")).includes('href="../"'));
  });

  test("needs no scripts and no other files", async () => {
    assert.doesNotMatch(await page("/files/zoo/"), /<script|src=|url\(|@import|<link/i);
  });
});

test("is replaced by the hook of another module", async () => {
  const remove = server.bus.add("directory-index", () => "mine", 1);
  assert.equal((await server.fetch("/files/")).text, "mine");
  remove();
});
