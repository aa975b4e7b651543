/**
 * `npm run test:browser`: tests the dashboard's pages of the node, its files and blocks in a
 * browser.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { confirmed, launched, opened, settled } from "./pages.ts";
import { DashboardServer } from "./server.ts";

/** The long form uploads files of 1 GiB. */
const isLong = process.argv.includes("--long");
const LARGE = isLong ? 2 ** 30 : 64 * 2 ** 20;
const MANY = 1000;

let browser: Browser;
let server: DashboardServer;
let folder: string;

before(async () => {
  [browser, server] = await Promise.all([launched(), DashboardServer.started()]);
  folder = await mkdtemp(join(tmpdir(), "modhost-uploads-"));
});
after(async () => {
  await browser?.close();
  await server?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function rpc<T>(command: string): Promise<T> {
  const response = await fetch(`${server.base}/api/v0/${command}`, { method: "POST" });
  assert.equal(response.status, 200, command);
  return (await response.json()) as T;
}

const chosen = (page: Page, label: string) => page.getByLabel(label, { exact: true });

/** Makes a file of this size that takes no space on the disk. */
async function sparse(name: string, bytes: number): Promise<string> {
  const path = join(folder, name);
  const file = await open(path, "w");
  await file.truncate(bytes);
  await file.write("begin", 0);
  await file.close();
  return path;
}

describe("uploads", () => {
  test(`of a folder of ${MANY} files show their progress and store all files`, async () => {
    const many = join(folder, "many");
    await mkdir(join(many, "deep"), { recursive: true });
    for (let at = 0; at < MANY; at += 1)
      await writeFile(join(many, at % 2 ? "deep" : ".", `file ${at}.txt`), `content ${at}`);
    await using tab = await opened(browser, `${server.admin}/admin/files`);
    const { page } = tab;
    await settled(page);
    await chosen(page, "Folder to upload").setInputFiles(many);
    await page.getByRole("heading", { name: /^Uploading: \d+ of 1,000$/ }).waitFor();
    await page.getByRole("heading", { name: "Uploaded 1,000 of 1,000" }).waitFor({ timeout: 300_000 });
    const { Entries } = await rpc<{ Entries: { Name: string }[] }>("files/ls?arg=/many/deep");
    assert.equal(Entries.length, MANY / 2);
    await page.getByRole("link", { name: "many/" }).click();
    await page.getByText("501 entries").waitFor();
  });

  test(`of ${LARGE / 2 ** 20} MiB show their speed and store the whole file`, async () => {
    const path = await sparse("large.bin", LARGE);
    await using tab = await opened(browser, `${server.admin}/admin/files`);
    const { page } = tab;
    await settled(page);
    await chosen(page, "Files to upload").setInputFiles(path);
    const meter = page.getByRole("progressbar", { name: "Progress of all uploads" });
    const seen = new Set<string>();
    const done = page.getByRole("heading", { name: "Uploaded 1 of 1" });
    while (!(await done.isVisible())) {
      seen.add((await meter.getAttribute("aria-valuenow").catch(() => null)) ?? "");
      await page.waitForTimeout(50);
    }
    assert.ok(seen.size > 2, `progress was seen at ${[...seen].join(", ")}`);
    const { Size } = await rpc<{ Size: number }>("files/stat?arg=/large.bin");
    assert.equal(Size, LARGE);
  });

  test("that are cancelled leave nothing behind", async () => {
    const path = await sparse("cancelled.bin", LARGE * 4);
    await using tab = await opened(browser, `${server.admin}/admin/files`);
    const { page } = tab;
    await settled(page);
    await chosen(page, "Files to upload").setInputFiles(path);
    await page.getByRole("heading", { name: "Uploading: 0 of 1" }).waitFor();
    await page.getByRole("button", { name: "Cancel all" }).click();
    await page.getByRole("heading", { name: "Uploaded 0 of 1, 1 cancelled" }).waitFor();
    const { Entries } = await rpc<{ Entries: { Name: string }[] }>("files/ls?arg=/");
    assert.ok(!Entries.some(({ Name }) => Name.includes("cancelled")));
  });
});

describe("hostile names and contents", () => {
  test("are shown as text and execute nothing", async () => {
    const page = "<script>top.document.title='pwned'</script><img src=x onerror=\"top.document.title='pwned'\">";
    const names = [
      "<img src=x onerror=document.title='pwned'>",
      "gnp\u202Eexe.png",
      "n".repeat(250),
      "a\nb",
      "..",
      "%2e%2e",
      "quote\"'`",
    ];
    const files = {
      "page.html": page,
      "page.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="top.document.title='pwned'"/>`,
    };
    for (const [name, content] of [
      ...names.filter((each) => each !== "..").map((each) => [each, page] as const),
      ...Object.entries(files),
    ]) {
      const form = new FormData();
      form.set("data", new Blob([content]));
      const call = `files/write?${new URLSearchParams({ arg: `/hostile/${name}`, create: "true", parents: "true" })}`;
      const response = await fetch(`${server.base}/api/v0/${call}`, { method: "POST", body: form });
      assert.equal(response.status, 200, name);
    }
    await using tab = await opened(browser, `${server.admin}/admin/files/hostile`);
    const { page: shown } = tab;
    await settled(shown);
    await shown.getByText("8 entries").waitFor();
    for (const name of Object.keys(files)) {
      await shown.getByRole("link", { name, exact: true }).click();
      await shown.getByText("Preview").waitFor();
      await shown.waitForTimeout(500);
      assert.doesNotMatch(await shown.title(), /pwned/);
      const link = await shown.getByRole("link", { name: "Download" }).getAttribute("href");
      const raw = await fetch(`${server.admin}${link?.replace("as=download", "as=inline")}`);
      assert.match(String(raw.headers.get("content-security-policy")), /sandbox/);
      assert.equal(raw.headers.get("x-content-type-options"), "nosniff");
      await shown.goBack();
    }
  });
});

describe("the node", () => {
  test("connects to a peer and disconnects, and the page updates live", async () => {
    await using other = await DashboardServer.started();
    const response = await fetch(`${other.base}/api/v0/id`, { method: "POST" });
    const { Addresses } = (await response.json()) as { Addresses: string[] };
    const address = Addresses.find((each) => each.includes("/127.0.0.1/tcp/")) ?? "";
    await using tab = await opened(browser, `${server.admin}/admin/node/peers`);
    const { page } = tab;
    await page.getByRole("button", { name: "Connect to a peer" }).click();
    await page.getByLabel("Address").fill(address);
    await confirmed(page, "Connect");
    await page.getByText(/^connect .* success$/).waitFor();
    const row = page.getByRole("table", { name: "Peers" }).getByRole("row").nth(1);
    await row.getByRole("button").click();
    await page.getByRole("button", { name: "Disconnect" }).click();
    await confirmed(page, "Disconnect");
    await page.getByText(/^disconnect .* success$/).waitFor();
  });

  test("adds, renames, finds and removes pins, and collects garbage", async () => {
    const form = new FormData();
    form.set("data", new Blob(["kept"]));
    const added = await fetch(`${server.base}/api/v0/add?pin=false&cid-version=1`, { method: "POST", body: form });
    const { Hash } = (await added.json()) as { Hash: string };
    await using tab = await opened(browser, `${server.admin}/admin/node/pins`);
    const { page } = tab;
    // Simulates a busy server: whatever follows the dialog has to wait for this request.
    await page.route("**/rename", async (route) => {
      await page.waitForTimeout(300);
      await route.continue();
    });
    await page.getByRole("button", { name: "Pin", exact: true }).click();
    await page.getByLabel("CID or path").fill(Hash);
    await page.getByLabel("Name", { exact: true }).fill("first");
    await confirmed(page, "Pin");
    await page.getByRole("row", { name: /first.*recursive/ }).waitFor();
    await page.getByRole("button", { name: `Rename the pin ${Hash}` }).click();
    await page.getByLabel("Name", { exact: true }).fill("second");
    await confirmed(page, "Rename");
    await page.getByRole("searchbox", { name: "Name or CID" }).fill("second");
    await page.getByRole("row", { name: /second.*recursive/ }).waitFor();
    await page.getByRole("button", { name: `Remove the pin ${Hash}` }).click();
    await confirmed(page, "Remove");
    await page.getByText("No pin matches.").waitFor();
    await page.goto(`${server.admin}/admin/node`);
    await page.getByRole("button", { name: "Collect garbage" }).click();
    await confirmed(page, "Collect");
    await page
      .getByRole("table", { name: "Jobs" })
      .getByRole("row", { name: /gc|garbage.*done/i })
      .first()
      .waitFor();
    await page.getByRole("table", { name: "Jobs" }).getByText("done").first().waitFor();
    const here = await fetch(`${server.base}/api/v0/block/stat?arg=${Hash}&offline=true`, { method: "POST" });
    assert.equal(here.status, 500, "the unpinned block is removed");
  });

  test("shows blocks with their links as a list and as a graph, makes keys, and publishes under them", async () => {
    const { Hash } = await rpc<{ Hash: string }>("files/stat?arg=/many");
    await using tab = await opened(browser, `${server.admin}/admin/explore?path=${Hash}`);
    const { page } = tab;
    await page.getByRole("heading", { name: /^Links \(501\)$/ }).waitFor();
    await page.getByRole("img", { name: /40 of its 501 links/ }).waitFor();
    await page.goto(`${server.admin}/admin/node/keys`);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("site");
    await confirmed(page, "Create");
    await page.getByRole("button", { name: "Publish site" }).click();
    await page.getByLabel("CID or path").fill(`/ipfs/${Hash}`);
    await confirmed(page, "Publish");
    await page.getByText(`site now leads to /ipfs/${Hash}.`).waitFor();
    await page.goto(`${server.admin}/admin/files`);
    await page.getByRole("button", { name: "More on many" }).click();
    await page.getByText(`https://dweb.link/ipfs/${Hash}?filename=many`).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
    await page.getByLabel("Key").selectOption({ label: `site, now /ipfs/${Hash.slice(0, 3)}…${Hash.slice(-7)}` });
    await confirmed(page, "Publish");
    await page.getByText(/^\/ipns\/.* now leads to it\.$/).waitFor();
  });
});

test("the page of a shared store shows its engines and the requests to them", async () => {
  const requests = [
    { kind: "put", count: 7, repeated: 1, failed: 0 },
    { kind: "get", count: 3, repeated: 0, failed: 0 },
  ];
  const status = {
    is_shared: true,
    engines: [
      { kind: "objects", place: "s3://modhost/content/" },
      { kind: "database", place: "127.0.0.1:5432", problem: "connect ECONNREFUSED" },
    ],
    cache: { size: 1000, limit: 4000, hits: 3, misses: 1 },
    waiting: { size: 0, changes: 0 },
    requests,
    commits: { count: 5, calls: 9, sessions_lost: 0 },
  };
  await using tab = await opened(browser, `${server.admin}/admin/`);
  const { page } = tab;
  await page.route("**/admin/api/node/store", (route) => route.fulfill({ json: status }));
  await page.goto(`${server.admin}/admin/node`);
  const table = page.getByRole("table", { name: "Requests to the object store" });
  await table.getByRole("row", { name: /put.*7.*1.*0/ }).waitFor();
  await table.getByRole("row", { name: /get.*3.*0.*0/ }).waitFor();
  await page.getByText("connect ECONNREFUSED").waitFor();
});
