import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import { exampleFile, listed } from "./support.ts";

const start = (config: Record<string, unknown> = {}) => createTestHost({ modules: [exampleFile("site")], config });

describe("the example mod_site", () => {
  test("serves pages with their types, index files and validators", async () => {
    await using running = await start();
    const page = await running.fetch("/site/");
    assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
    for (const link of listed(await page.text())) assert.equal((await running.fetch(`/site/${link}`)).status, 200);
    const style = await running.fetch("/site/style.css");
    assert.equal(style.headers.get("content-type"), "text/css; charset=utf-8");
    const headers = { "if-none-match": style.headers.get("etag") ?? "" };
    assert.equal((await running.fetch("/site/style.css", { headers })).status, 304);
    assert.match(await (await running.fetch("/site/about")).text(), /About the site/);
    assert.equal((await running.fetch("/site/nowhere")).status, 404);
  });

  test("lists the downloads and no other folder", async (t) => {
    const folder = await ownSite();
    t.after(() => rm(folder, { recursive: true }));
    await using running = await start({ site_dir: folder });
    const headers = { accept: "text/plain" };
    assert.equal(await (await running.fetch("/site/downloads/", { headers })).text(), "a.bin\n");
    assert.equal((await running.fetch("/site/downloads/a.bin")).headers.get("cache-control"), "max-age=3600");
    assert.equal((await running.fetch("/site/")).status, 403);
  });

  test("adds routes to the files: a page without a file, and a page that depends on an option", async () => {
    await using open = await start({ http_external_url: "https://example.org/" });
    const now = await open.fetch("/site/now.json");
    const { now: time, site } = (await now.json()) as { now: string; site: string };
    assert.ok(Math.abs(Date.now() - Date.parse(time)) < 60_000);
    assert.equal(site, "https://example.org/site");
    assert.match(await (await open.fetch("/site/robots.txt")).text(), /^Allow: \/$/m);

    await using closed = await start({ site_indexable: false });
    assert.match(await (await closed.fetch("/site/robots.txt")).text(), /^Disallow: \/$/m);
  });
});

async function ownSite(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-site-"));
  await mkdir(join(folder, "downloads"));
  await writeFile(join(folder, "downloads", "a.bin"), "a");
  return folder;
}
