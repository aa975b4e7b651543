/**
 * `npm run test:browser -- gateway`: tests content of the gateway in a browser: pages, seeking in
 * sound, websites and workers.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { createNode, type Node } from "#node/index.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { DESK, faultsOfAccess, launched, PHONE } from "../dashboard/pages.ts";

const MANY = 10_000;
/** Length of the sound, a quiet tone, in seconds. */
const SECONDS = 3600;
const RATE = 8000;

let browser: Browser;
let host: TestHost;
const cids: Record<string, string> = {};

before(async () => {
  browser = await launched();
  host = await startHost({
    async prepare(folder) {
      await using node = await createNode({ repo: join(folder, "data", "repo"), offline: true });
      await fill(node);
    },
    config: { modules_enabled: ["http", "http_gateway"], https_ports: [], node_offline: true },
  });
});
after(async () => {
  await browser?.close();
  await host?.stop();
});

async function fill(node: Node): Promise<void> {
  const added = async (name: string, files: readonly { path: string; content?: string | Uint8Array }[]) => {
    const all = files.map(({ path, content }) => ({
      path: `${name}/${path}`,
      ...(content === undefined ? {} : { content }),
    }));
    for await (const { path, cid } of node.addAll(all, { cidVersion: 1 })) if (path === name) cids[name] = String(cid);
  };
  await added("things", [
    { path: "readme.md", content: "# Things" },
    { path: "film.mp4", content: new Uint8Array(4_812_331) },
    { path: "song.flac", content: new Uint8Array(31_204) },
    { path: "beach.jpg", content: new Uint8Array(2_340_112) },
    { path: "backup.tar.gz", content: new Uint8Array(73_400) },
    { path: '<b>not bold & "quoted".html', content: "<p>" },
    { path: "Größe.pdf", content: new Uint8Array(88) },
    { path: `a rather long name that goes on ${"and on ".repeat(20)}.txt`, content: "long" },
    { path: `${"unbroken".repeat(25)}.txt`, content: "long" },
    { path: "photos of summer/2020/beach.jpg", content: "photo" },
  ]);
  cids.empty = String(await node.object.new({ template: "unixfs-dir" }));
  await added(
    "many",
    Array.from({ length: MANY }, (_, at) => ({ path: `file-${at}.txt`, content: `${at}` })),
  );
  await added("sounds", [
    { path: "tone.wav", content: wave() },
    {
      path: "index.html",
      content: "<!doctype html><title>Tone</title><audio controls preload=metadata src=tone.wav></audio>",
    },
  ]);
  for (const site of ["one", "two"])
    await added(site, [
      { path: "index.html", content: `<!doctype html><title>${site}</title><h1>${site}</h1>` },
      { path: "blog/new.html", content: `<!doctype html><title>new</title><h1>moved here</h1>` },
      { path: "404.html", content: `<!doctype html><title>lost</title><h1>nothing of ${site} is here</h1>` },
      { path: "worker.js", content: worker(site) },
      { path: "_redirects", content: "/old/:name /blog/:name.html 301\n/app/* /index.html 200\n/* /404.html 404\n" },
    ]);
}

/** The source of a worker that responds to all requests below it with a text of its own. */
const worker = (site: string): string => `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.url.endsWith("/asked")) event.respondWith(new Response("the worker of ${site}"));
});
`;

/** Makes a WAV file with one channel of 8 bits, which browsers play without a codec. */
function wave(): Uint8Array {
  const length = SECONDS * RATE;
  const bytes = Buffer.alloc(44 + length, 0x80);
  bytes.write("RIFF", 0, "latin1");
  bytes.writeUInt32LE(36 + length, 4);
  bytes.write("WAVEfmt ", 8, "latin1");
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(RATE, 24);
  bytes.writeUInt32LE(RATE, 28);
  bytes.writeUInt16LE(1, 32);
  bytes.writeUInt16LE(8, 34);
  bytes.write("data", 36, "latin1");
  bytes.writeUInt32LE(length, 40);
  for (let at = 0; at < length; at += 1) bytes[44 + at] = 128 + ((at * 7) % 16);
  return bytes;
}

/** Returns a URL of the path gateway, which serves no websites: an IP address has no subdomains. */
const path = (rest: string) => `http://127.0.0.1:${host.http}${rest}`;
const siteOf = (name: string) => `http://${cids[name]}.ipfs.localhost:${host.http}`;

async function tab(options: BrowserContextOptions = DESK): Promise<{ page: Page; faults: string[] } & AsyncDisposable> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", ({ message }) => faults.push(message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  return { page, faults, [Symbol.asyncDispose]: () => context.close() };
}

const looks: readonly [string, BrowserContextOptions][] = [
  ["desk", DESK],
  ["desk-dark", { ...DESK, colorScheme: "dark" }],
  ["phone", PHONE],
  ["phone-dark", { ...PHONE, colorScheme: "dark" }],
];

describe("the listing of a directory", () => {
  for (const [look, options] of looks) {
    test(`shows everything within the width of the window and is accessible: ${look}`, async () => {
      const pages = {
        things: [path(`/ipfs/${cids.things}/`), "photos of summer"],
        below: [path(`/ipfs/${cids.things}/photos%20of%20summer/2020/`), "beach.jpg"],
        empty: [path(`/ipfs/${cids.empty}/`), "This directory is empty"],
        missing: [path(`/ipfs/${cids.things}/nowhere`), "404"],
        bad: [path("/ipfs/nothing"), "400"],
      };
      for (const [name, [url = "", holds = ""]] of Object.entries(pages)) {
        await using open = await tab(options);
        const { page, faults } = open;
        await page.goto(url);
        await page.getByText(holds).first().waitFor();
        const wider = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert.equal(wider, 0, `${name} scrolls sideways`);
        if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${name}-${look}.png`) });
        assert.deepEqual(faults, []);
        assert.deepEqual(await faultsOfAccess(page), [], name);
      }
    });
  }

  test("leads up by its breadcrumbs and into its entries with the keyboard alone", async () => {
    await using open = await tab();
    const { page } = open;
    await page.goto(path(`/ipfs/${cids.things}/photos%20of%20summer/2020/`));
    await page.getByRole("link", { name: "photos of summer" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "2020", exact: true }).waitFor();
    await page.getByRole("link", { name: "2020", exact: true }).press("Enter");
    await page.getByRole("link", { name: "beach.jpg" }).waitFor();
    assert.ok(page.url().endsWith("/photos%20of%20summer/2020/"), page.url());
  });

  test(`with ${MANY} entries shows all of them`, async () => {
    await using open = await tab();
    await open.page.goto(path(`/ipfs/${cids.many}/`));
    assert.equal(await open.page.locator("tbody tr").count(), MANY);
    await open.page.getByRole("link", { name: "file-9999.txt" }).scrollIntoViewIfNeeded();
  });
});

test("seeking in sound works: the browser requests the ranges that it plays", async () => {
  await using open = await tab();
  const { page } = open;
  const ranges: string[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith("tone.wav") && response.status() === 206)
      ranges.push(response.headers()["content-range"] ?? "");
  });
  await page.goto(`${path(`/ipfs/${cids.sounds}/`)}`);
  const at = await page.evaluate(`(async () => {
    const audio = document.querySelector("audio");
    if (audio.readyState < 1) await new Promise((go, fail) => { audio.onloadedmetadata = go; audio.onerror = fail; });
    const { duration } = audio;
    for (const to of [3500, 1200]) {
      const sought = new Promise((go) => { audio.onseeked = go; });
      audio.currentTime = to;
      await sought;
    }
    return { duration, at: audio.currentTime, seekable: audio.seekable.end(0) };
  })()`);
  assert.deepEqual(at, { duration: SECONDS, at: 1200, seekable: SECONDS });
  const starts = ranges.map((range) => Number(/^bytes (\d+)-/.exec(range)?.[1]));
  assert.ok(
    starts.some((start) => start > 3400 * RATE),
    ranges.join("\n"),
  );
});

describe("a website on a host of its own", () => {
  test("serves its pages, redirects, rewrites and its own page for missing paths", async () => {
    await using open = await tab();
    const { page } = open;
    const shows = async (rest: string, heading: string, status: number) => {
      const response = await page.goto(`${siteOf("one")}${rest}`);
      assert.deepEqual([await page.locator("h1").textContent(), response?.status()], [heading, status], rest);
    };
    await shows("/", "one", 200);
    await shows("/old/new?a=b", "moved here", 200);
    assert.equal(page.url(), `${siteOf("one")}/blog/new.html?a=b`);
    await shows("/app/any/where", "one", 200);
    assert.equal(page.url(), `${siteOf("one")}/app/any/where`);
    await shows("/nowhere", "nothing of one is here", 404);
  });

  test("is the target of the redirect from its path at localhost", async () => {
    await using open = await tab();
    await open.page.goto(`http://localhost:${host.http}/ipfs/${cids.two}/`);
    assert.equal(open.page.url(), `${siteOf("two")}/`);
  });

  test("cannot reach the workers and the storage of other websites", async () => {
    await using open = await tab();
    const { page } = open;
    const register = `navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready).then(() =>
      new Promise((go) => navigator.serviceWorker.controller ? go() : navigator.serviceWorker.addEventListener("controllerchange", go)))`;
    const request = `fetch("/asked").then(async (answer) => answer.status + " " + (answer.ok ? await answer.text() : ""))`;
    await page.goto(siteOf("one"));
    await page.evaluate(register);
    await page.evaluate(`localStorage.setItem("secret", "of one")`);
    assert.equal(await page.evaluate(request), "200 the worker of one");
    await page.goto(siteOf("two"));
    assert.equal(await page.evaluate(request), "404 ");
    assert.equal(await page.evaluate(`localStorage.getItem("secret")`), null);
    await page.evaluate(register);
    assert.equal(await page.evaluate(request), "200 the worker of two");
    await page.goto(siteOf("one"));
    assert.equal(await page.evaluate(request), "200 the worker of one");
  });

  test("cannot register a worker for its own root or for others on a path gateway", async () => {
    await using open = await tab();
    const { page } = open;
    const registered = (script: string, options: string) =>
      page.evaluate(
        `navigator.serviceWorker.register("${script}", ${options}).then(() => "taken", (error) => error.name)`,
      );
    await page.goto(path(`/ipfs/${cids.one}/`));
    // A worker controls only what is below its script, unless a header of the gateway allows more.
    assert.equal(await registered(`/ipfs/${cids.one}/worker.js`, `{ scope: "/ipfs/" }`), "SecurityError");
    assert.equal(await registered(`/ipfs/${cids.one}`, "{}"), "TypeError");
    assert.equal(await registered(`/ipfs/${cids.one}/worker.js`, `{ scope: "/ipfs/${cids.two}/" }`), "SecurityError");
  });
});
