import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { readGuide, shownFiles, typeErrors, writeFiles } from "./support.ts";

const pages = [
  "migrate-from-prosody",
  ...["more-concepts", "configuration"].map((page) => `migrate-from-prosody/${page}`),
];
const guide = pages.map(readGuide).join("\n");
const files = shownFiles(guide);

describe("the guide from Prosody", () => {
  let folder: string;
  let running: TestHost;
  const weather = createServer((_request, response) => response.end("Rain\n"));

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-guide-"));
    await writeFiles(folder, files);
    await mkdir(join(folder, "www"));
    await writeFile(join(folder, "www", "a.txt"), "a file");
    weather.listen(0, "127.0.0.1");
    await once(weather, "listening");
    running = await createTestHost({
      modules: files.map(({ name }) => join(folder, name)),
      config: {
        modules_enabled: ["http_dir_listing"],
        weather_url: `http://127.0.0.1:${(weather.address() as AddressInfo).port}/`,
      },
    });
  });
  after(async () => {
    await running.stop();
    weather.close();
    await rm(folder, { recursive: true });
  });

  const text = async (path: string, init?: RequestInit) => (await running.fetch(path, init)).text();

  test("shows modules that compile, and every one of them loads", () => {
    assert.ok(files.length >= 11, `${files.length} modules`);
    assert.deepEqual(typeErrors(files.map(({ name }) => join(folder, name))), []);
    const states = running.host.modules().filter(({ status }) => status !== "loaded");
    assert.deepEqual(states, []);
  });

  test("shows the Lua original next to each", () => {
    assert.equal(guide.split("```lua").length - 1, files.length + 1, "one for each module, and the configuration");
  });

  test("greets", async () => {
    assert.equal(await text("/greet"), "Hello\n");
    assert.equal(await text("/greet/to/Ada"), "Hello, Ada!\n");
  });

  test("responds with a page, a redirect, a status and an error", async () => {
    const page = await running.fetch("/shop/page");
    assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
    const moved = await running.fetch("/shop/moved", { redirect: "manual" });
    assert.deepEqual([moved.status, moved.headers.get("location")], [302, "/shop/page"]);
    assert.equal((await running.fetch("/shop/gone")).status, 410);
    const conflict = await running.fetch("/shop/order", { method: "POST" });
    assert.equal(conflict.status, 409);
    assert.match(await conflict.text(), /Sold out/);
  });

  test("responds later", async () => {
    assert.deepEqual(await Promise.all([text("/later/sent"), text("/later/promised")]), ["Sent later\n", "Promised\n"]);
  });

  test("decodes a form and a query", async () => {
    assert.equal(await text("/form/", { method: "POST", body: "name=Ada+L" }), "Thank you, Ada L\n");
    assert.equal((await running.fetch("/form/", { method: "POST", body: "nothing" })).status, 400);
    assert.equal(await text("/form/link?text=a+b"), "/find/a%20b\n");
  });

  test("reads options", async () => {
    assert.equal(await text("/notes"), "100 notes for 604800 s, without spam\n");
  });

  test("serves and lists files", async () => {
    assert.equal(await text("/pages/a.txt"), "a file");
    assert.match(await text("/pages/"), /a\.txt/);
  });

  test("replaces the error page", async () => {
    assert.equal(await text("/nowhere"), "Nothing here\n");
  });

  test("sends a request to another server", async () => {
    assert.equal(await text("/weather/today"), "Rain\n");
  });

  test("preserves state across a reload", async () => {
    assert.equal(await text("/visits"), "1\n");
    await running.host.reload("visits");
    assert.equal(await text("/visits"), "2\n");
  });

  test("stores an upload", async () => {
    assert.equal((await running.fetch("/store/a.txt", { method: "PUT", body: "stored" })).status, 201);
    assert.equal(await readFile(join(running.folder, "store", "a.txt"), "utf8"), "stored");
    assert.equal((await running.fetch("/store/.hidden", { method: "PUT", body: "x" })).status, 400);
  });

  test("shows a valid configuration", async () => {
    const [, yaml = ""] = /^```yaml\n(.*?)^```$/ms.exec(guide) ?? [];
    const config = parse(yaml.replace("/srv/modules", JSON.stringify(folder))) as Record<string, unknown>;
    await using configured = await createTestHost({ config: { ...config, http_ports: [0] } });
    const loaded = configured.host.modules().map(({ name, host, status }) => `${name} ${host} ${status}`);
    assert.ok(loaded.includes("greet a.example loaded"), loaded.join("\n"));
    assert.ok(loaded.includes("notes a.example loaded"), loaded.join("\n"));
  });

  test("names only options of the reference, except for those that it calls removed", async () => {
    const reference = await readFile(new URL("../../../../docs/reference/options.md", import.meta.url), "utf8");
    const rows = [...guide.matchAll(/^\| (`.*?) \| (?:the same|new:)/gm)].map(([, names = ""]) => names);
    const named = rows.flatMap((names) => [...names.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name));
    assert.ok(named.length > 15);
    assert.deepEqual(
      named.filter((name) => !reference.includes(`| \`${name}\` |`)),
      [],
    );
  });
});
