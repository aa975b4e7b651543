/**
 * `npm run screenshots`: opens the pages that people see in headless Chromium and writes pictures
 * of them to docs/images, for a person to look at. Fails if a page lacks something that it should
 * show, runs a script or requests anything other than itself.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { createHost } from "#core/index.ts";
import type { HttpFiles } from "#modules/mod_http_files/types.ts";
import { freePort } from "#test/support/free_port.ts";
import { takePictures } from "./dashboard/pictures.ts";
import { takeTerminal } from "./terminal.ts";

const images = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "modhost-pages-"));
mkdirSync(join(folder, "site/photos of summer"), { recursive: true });
mkdirSync(join(folder, "site/music"));
for (const [name, size] of [
  ["readme.txt", 1_204],
  ['<b>not bold & "quoted".html', 88],
  ["Größe.pdf", 4_812_331],
  ["a rather long file name that goes on and on until it has to be broken somewhere.tar.gz", 73_400_320],
] as const) {
  writeFileSync(join(folder, "site", name), Buffer.alloc(size));
}

const host = createHost({
  config: {
    data_path: join(folder, "data"),
    http_ports: [0],
    https_ports: [],
    admin_port: await freePort(),
    http_interfaces: ["127.0.0.1"],
    http_log: false,
    http_files_dir: "/srv/www",
  },
  modules: [
    {
      name: "pages",
      load(module) {
        const { serve } = module.depends<HttpFiles>("http_files");
        module.provides("http", {
          route: {
            "GET /site/*": serve({ path: join(folder, "site"), directory_index: true }),
            "GET /broken": () => {
              throw new Error("a secret that no page may show");
            },
          },
        });
      },
    },
    {
      name: "orders",
      load() {
        throw new Error("the database orders.db cannot be opened");
      },
    },
  ],
});

const pages = [
  { name: "listing", path: "/pages/site/", holds: ["Größe.pdf", "<b>not bold &", "photos of summer"] },
  { name: "listing-dark-phone", path: "/pages/site/", holds: ["readme.txt"], dark: true, width: 400 },
  { name: "error-404", path: "/pages/nowhere", holds: ["404", "Not Found"] },
  {
    name: "start-page",
    path: "/",
    holds: ["modhost is running", "/pages/", "Only callers who may operate the server see this page"],
    height: 980,
  },
  {
    name: "start-page-dark-phone",
    path: "/",
    holds: ["Try next", "is not loaded"],
    dark: true,
    width: 400,
    height: 1330,
  },
  { name: "error-500", path: "/pages/broken", holds: ["500", "Request "], dark: true },
] as const;

async function shoot(browser: Browser, base: string, page: (typeof pages)[number]): Promise<void> {
  const { dark = false, width = 900, height = 560 } = page as { dark?: boolean; width?: number; height?: number };
  const tab = await browser.newPage({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
  });
  const requests: string[] = [];
  tab.on("request", (request) => requests.push(request.url()));
  await tab.goto(`${base}${page.path}`);
  const text = (await tab.locator("body").textContent()) ?? "";
  for (const expected of page.holds) assert.ok(text.includes(expected), `${page.name} lacks ${expected}`);
  assert.ok(!text.includes("secret"), `${page.name} shows something secret`);
  assert.equal(await tab.locator("script").count(), 0);
  assert.deepEqual(
    requests.filter((url) => url !== `${base}${page.path}`),
    [],
  );
  await tab.screenshot({ path: join(images, `${page.name}.png`) });
  await tab.close();
  console.log(`${page.name}: ${base}${page.path} looks as it should; docs/images/${page.name}.png`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
try {
  await host.start();
  const port = host.listening().find(({ scheme }) => scheme === "http")?.port;
  for (const page of pages) await shoot(browser, `http://127.0.0.1:${port}`, page);
  await takeTerminal(browser, images);
  await takePictures(browser, images);
} finally {
  await browser.close();
  await host.stop();
  rmSync(folder, { recursive: true, force: true });
}
