/** Takes pictures of the dashboard for the guides, on a server with some data. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { DESK, opened, PHONE, settled } from "./pages.ts";
import { DashboardServer } from "./server.ts";

/** A plot with fewer samples shows nothing. Each takes ten seconds. */
const SAMPLES = 4;
const SAMPLE = 10_000;

const pictures: readonly { name: string; path: string; holds: string; options: BrowserContextOptions }[] = [
  { name: "overview", path: "", holds: "the database orders.db cannot be opened", options: DESK },
  { name: "routes-dark", path: "routes", holds: "GET /shop/items/*", options: { ...DESK, colorScheme: "dark" } },
  { name: "files", path: "files", holds: "film.mp4", options: DESK },
  { name: "node", path: "node", holds: "verify the blocks", options: DESK },
  { name: "files-phone", path: "files", holds: "film.mp4", options: PHONE },
];

/**
 * Writes `dashboard-*.png`.
 * @throws AssertionError if a page lacks something that it should show
 */
export async function takePictures(browser: Browser, folder: string): Promise<void> {
  await using server = await DashboardServer.started();
  await using peer = await DashboardServer.started();
  await fill(server, peer);
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    await visit(server, sample);
    await wait(SAMPLE);
  }
  for (const { name, path, holds, options } of pictures) {
    await using tab = await opened(browser, `${server.admin}/admin/${path}`, { locale: "en-GB", ...options });
    await settled(tab.page);
    await tab.page.getByText(holds).first().waitFor();
    // The overview gets new metrics each second.
    await wait(path === "" ? 20_000 : 1500);
    const file = join(folder, `dashboard-${name}.png`);
    const { length } = await tab.page.screenshot({ path: file });
    assert.ok(length < 150_000, `${file} has ${length} bytes`);
    console.log(`dashboard-${name}: /admin/${path} looks as it should; docs/images/dashboard-${name}.png`);
  }
}

async function fill(server: DashboardServer, peer: DashboardServer): Promise<void> {
  await server.write(
    "mod_orders.js",
    `export default () => { throw new Error("the database orders.db cannot be opened"); };`,
  );
  await admin(server, "modules", { name: "orders" }).catch(() => undefined);
  const { Addresses } = (await rpc(peer, "id")) as { Addresses: string[] };
  const address = Addresses.find((each) => each.includes("/127.0.0.1/tcp/")) ?? "";
  await rpc(server, `swarm/connect?arg=${encodeURIComponent(address)}`);
  for (const [name, bytes] of [
    ["film.mp4", 73_400_320],
    ["readme.md", 1204],
    ["photos/beach.jpg", 2_340_112],
    ["music/song.flac", 31_204_557],
    ["backup of last summer, with a long name.tar.gz", 4_812_331],
  ] as const) {
    const form = new FormData();
    form.set("data", new Blob([Buffer.alloc(bytes, name)]));
    await rpc(server, `files/write?arg=${encodeURIComponent(`/${name}`)}&create=true&parents=true`, form);
  }
  await admin(server, "node/repo/verify", {});
}

async function visit({ base }: DashboardServer, round: number): Promise<void> {
  for (let at = 0; at < 60 + 40 * (round % 2); at += 1)
    await Promise.all(
      ["/shop/", `/shop/items/${at}`, at % 20 === 0 ? "/shop/fail" : "/shop/"].map((path) => get(base + path)),
    );
}

const get = async (url: string) => void (await (await fetch(url)).arrayBuffer());

async function rpc(server: DashboardServer, command: string, body?: FormData): Promise<unknown> {
  const response = await fetch(`${server.base}/api/v0/${command}`, { method: "POST", ...(body && { body }) });
  assert.equal(response.status, 200, command);
  return JSON.parse((await response.text()) || "null");
}

async function admin(server: DashboardServer, path: string, body: unknown): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${server.admin}/admin/api/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
}
