/**
 * `npm run test:browser -- gateway/rpc`: tests in a browser that no page of content can call the
 * RPC of the same server.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { createNode } from "#node/index.ts";
import { startHost, type TestHost } from "#test/support/host.ts";

let browser: Browser;
/**
 * `led`: paths at localhost redirect to a host for each root. `flat`: roots have no hosts of their
 * own, as at IP addresses.
 */
const hosts: Record<string, TestHost> = {};
const cids: Record<string, string> = {};

/** Tries to create a key in every way that a script can. The name of the key names the attempt. */
const attack = `
self.attack = async (who, bases) => {
  const seen = [];
  for (const base of bases) {
    for (const [way, init] of Object.entries({
      cors: { method: "POST" },
      blind: { method: "POST", mode: "no-cors" },
      hidden: { method: "POST", referrerPolicy: "no-referrer" },
      form: { method: "POST", body: new URLSearchParams({ a: "b" }) },
      credentials: { method: "POST", credentials: "include" },
    })) {
      const url = base + "/api/v0/key/gen?arg=" + encodeURIComponent(who + "-" + way + "-" + base.replace(/[^a-z0-9]/g, ""));
      const status = await fetch(url, init).then((answer) => answer.type === "opaque" ? "opaque" : answer.status, (error) => error.name);
      seen.push(way + " " + base + " " + status);
    }
  }
  return seen;
};
`;

const worker = `${attack}
self.onmessage = async ({ data: [who, bases] }) => postMessage(await attack(who, bases));
self.addEventListener("connect", ({ ports: [port] }) => { port.onmessage = async ({ data: [who, bases] }) => port.postMessage(await attack(who, bases)); });
self.addEventListener("fetch", (event) => {
  const [, who] = /by-worker=([a-z-]+)/.exec(event.request.url) ?? [];
  if (who) event.respondWith(attack(who, [location.origin]).then((seen) => new Response(seen.join()), (error) => new Response(String(error))));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
`;

const files = {
  "page.html": `<!doctype html><title>page</title><script>${attack}</script><iframe src="inner.html"></iframe>`,
  "inner.html": `<!doctype html><title>inner</title><script>${attack}</script>`,
  "page.svg": `<svg xmlns="http://www.w3.org/2000/svg"><script>${attack.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</script></svg>`,
  "page.xhtml": `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><script>${attack.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</script></body></html>`,
  "worker.js": worker,
  "words.txt": "words",
};

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--host-resolver-rules=MAP box.test 127.0.0.1"],
  });
  for (const [name, gateways] of [
    ["led", {}],
    ["flat", { localhost: null, "box.test": { Paths: ["/ipfs", "/ipns"] } }],
  ] as const) {
    hosts[name] = await startHost({
      async prepare(folder) {
        await using node = await createNode({ repo: join(folder, "data", "repo"), offline: true });
        const all = Object.entries(files).map(([path, content]) => ({ path: `site/${path}`, content }));
        for await (const { path, cid } of node.addAll(all, { cidVersion: 1 }))
          if (path === "site") cids.site = `${cid}`;
      },
      config: {
        modules_enabled: ["http", "http_api", "http_gateway"],
        http_interfaces: ["127.0.0.1", "::1"],
        https_ports: [],
        node_offline: true,
        gateway_public_gateways: gateways,
        // Trusted like a name of the operator: without the sandbox, its pages could call the API.
        api_hosts: ["box.test"],
      },
    });
  }
});
after(async () => {
  await browser?.close();
  for (const host of Object.values(hosts)) await host.stop();
});

const portOf = (name: string) => hosts[name]?.http ?? 0;
/** Returns all URLs at which a page can reach the API. */
const bases = (name: string) => ["127.0.0.1", "localhost", "[::1]"].map((each) => `http://${each}:${portOf(name)}`);

/** Asserts that only this test has created keys. */
async function assertUncalled(name: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${portOf(name)}/api/v0/key/list`, { method: "POST" });
  const { Keys } = (await response.json()) as { Keys: { Name: string }[] };
  assert.deepEqual(
    Keys.map((key) => key.Name),
    ["self"],
  );
}

/** Asserts that the attacking script has received no response of the API. */
const refused = (seen: unknown) => {
  assert.ok(Array.isArray(seen) && seen.length > 0, JSON.stringify(seen));
  for (const each of seen) assert.match(String(each), / (TypeError|403|404|405|opaque)$/, String(each));
};

async function opened(url: string): Promise<{ page: Page } & AsyncDisposable> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  return { page, [Symbol.asyncDispose]: () => context.close() };
}

const run = (page: Pick<Page, "evaluate">, who: string, name: string, extra: readonly string[] = []) =>
  page.evaluate(`self.attack(${JSON.stringify(who)}, ${JSON.stringify([...bases(name), ...extra])})`);

/** Attacks from an open page by every worker, frame and form that it can create. */
async function assertContained(page: Page, name: string, who: string): Promise<void> {
  refused(await run(page, who, name, [new URL(page.url()).origin]));
  for (const frame of page.frames().slice(1)) refused(await run(frame as never, `${who}-frame`, name));
  const made = await page.evaluate(`(async () => {
    const seen = {};
    const bases = ${JSON.stringify(bases(name))};
    const asked = (make) => new Promise((go) => {
      try {
        const port = make();
        port.onmessage = ({ data }) => go(data);
        port.onerror = () => go(["no TypeError"]);
        port.postMessage(["${who}-worker", bases]);
        setTimeout(() => go(["no TypeError"]), 5000);
      } catch (error) { go(["no TypeError"]); }
    });
    seen.worker = await asked(() => new Worker("worker.js"));
    seen.shared = await asked(() => { const { port } = new SharedWorker("worker.js"); port.start(); return port; });
    seen.blob = await asked(() => new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}]))));
    for (const [kind, source] of Object.entries({ srcdoc: "srcdoc", blob: "blob", data: "data", blank: "blank" })) {
      const frame = document.createElement("iframe");
      const text = "<script>" + ${JSON.stringify(attack.replaceAll("</", "<\\/"))} + "attack('${who}-" + kind + "', " + JSON.stringify(bases) + ").then((seen) => parent.postMessage({ kind: '" + kind + "', seen }, '*'))<\\/script>";
      const reported = new Promise((go) => { addEventListener("message", ({ data }) => data.kind === kind && go(data.seen)); setTimeout(() => go(["no TypeError"]), 5000); });
      if (kind === "srcdoc") frame.srcdoc = text;
      else if (kind === "blob") frame.src = URL.createObjectURL(new Blob([text], { type: "text/html" }));
      else if (kind === "data") frame.src = "data:text/html," + encodeURIComponent(text);
      document.body.append(frame);
      if (kind === "blank") { const inner = frame.contentDocument; if (inner) { inner.open(); inner.write(text); inner.close(); } }
      seen["frame " + kind] = await reported;
    }
    return seen;
  })()`);
  for (const seen of Object.values(made as Record<string, unknown>)) refused(seen);
  // The page opens a tab with a form.
  const popup = page.waitForEvent("popup");
  await page.evaluate(`(() => {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", target: "_blank", action: "${bases(name)[0]}/api/v0/key/gen?arg=${who}-post" });
    document.body.append(form);
    form.submit();
  })()`);
  const tab = await popup;
  await tab.waitForLoadState();
  assert.match(await tab.content(), /403 - Forbidden/);
  await tab.close();
}

describe("a page of content in a browser", () => {
  for (const name of ["127.0.0.1", "localhost", "[::1]"]) {
    test(`at ${name} is redirected to a host of its own and cannot call the API`, async () => {
      await using open = await opened(`http://${name}:${portOf("led")}/ipfs/${cids.site}/page.html`);
      const own = `http://${cids.site}.ipfs.localhost:${portOf("led")}`;
      assert.equal(open.page.url(), `${own}/page.html`);
      await assertContained(open.page, "led", "led");
      // On this host it has a worker that responds for its own pages, and for nothing else.
      const registered = `navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready).then(() => "taken")`;
      assert.equal(await open.page.evaluate(registered), "taken");
      await open.page.goto(`${own}/?by-worker=sw`);
      assert.match(await open.page.content(), /40[345]|TypeError/);
      await open.page.goto(`http://127.0.0.1:${portOf("led")}/api/v0/version?by-worker=sw`);
      assert.match(await open.page.content(), /405/);
      await assertUncalled("led");
    });
  }

  for (const name of ["127.0.0.1", "localhost", "[::1]", "box.test"]) {
    test(`at ${name}, where roots have no hosts, is sandboxed and cannot call the API`, async () => {
      const url = `http://${name}:${portOf("flat")}/ipfs/${cids.site}`;
      await using open = await opened(`${url}/page.html`);
      const { page } = open;
      assert.equal(page.url(), `${url}/page.html`);
      assert.equal(await page.evaluate("self.origin"), "null");
      await assertContained(page, "flat", "flat");
      assert.match(
        String(
          await page.evaluate(
            `(async () => navigator.serviceWorker.register("worker.js"))().then(() => "taken", (error) => error.name)`,
          ),
        ),
        /SecurityError|TypeError|NotSupportedError/,
      );
      for (const file of ["page.svg", "page.xhtml"]) {
        await page.goto(`${url}/${file}`);
        assert.equal(await page.evaluate("self.origin"), "null", file);
        refused(await run(page, file.replace(".", "-"), "flat", [`http://${name}:${portOf("flat")}`]));
      }
      await assertUncalled("flat");
    });
  }

  test("reads its own files and opens links inside the sandbox", async () => {
    await using open = await opened(`http://127.0.0.1:${portOf("flat")}/ipfs/${cids.site}/page.html`);
    assert.equal(await open.page.evaluate(`fetch("words.txt").then((answer) => answer.text())`), "words");
    await open.page.goto(`http://127.0.0.1:${portOf("flat")}/ipfs/${cids.site}/`);
    await open.page.getByRole("link", { name: "words.txt" }).click();
    await open.page.getByText("words").waitFor();
  });
});

test("a page of the server cannot start a worker from content", async () => {
  await using open = await opened(`http://127.0.0.1:${portOf("flat")}/api/openapi.json`);
  const registered = `navigator.serviceWorker.register("/ipfs/${cids.site}/worker.js").then(() => "taken", (error) => error.name)`;
  assert.equal(await open.page.evaluate(registered), "TypeError");
});
