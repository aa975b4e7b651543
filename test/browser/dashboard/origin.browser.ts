/**
 * `npm run test:browser`: tests what pages of apps, of other ports and of other names can do to the
 * dashboard in a browser that has access to it. Chromium offers each of them everything it has:
 * scripts, windows, frames, workers and streams.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server as HttpServer, type IncomingMessage } from "node:http";
import { after, before, describe, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { DESK, launched } from "./pages.ts";
import { DashboardServer } from "./server.ts";

/**
 * Attacks on the dashboard. Each attempt returns what it got. "KEY" stands for a page key that it
 * has read.
 */
const attempts = `
const keyOf = (page) => page?.querySelector?.("meta[name=page-key]")?.getAttribute("content") || undefined;
const within = (work) => Promise.race([work, new Promise((go) => setTimeout(() => go("nothing came"), 2500))]);
const read = async (answer) => answer.type === "opaque" ? "opaque" : answer.status + " " + (await answer.text()).slice(0, 80);
const lookInto = (tab) => new Promise((go) => {
  let looks = 0;
  const timer = setInterval(() => {
    looks += 1;
    let key;
    try { key = keyOf(tab?.document); } catch {}
    if (key === undefined && looks < 20) return;
    clearInterval(timer);
    go(key === undefined ? "nothing to see" : "KEY");
  }, 100);
});
const framed = (tag, address) => new Promise((go) => {
  const frame = document.createElement(tag);
  frame[tag === "iframe" ? "src" : "data"] = address;
  frame.onload = frame.onerror = () => {
    try { go(keyOf(frame.contentDocument) === undefined ? "nothing to see" : "KEY"); } catch { go("blocked"); }
  };
  document.body.append(frame);
});
const change = { method: "POST", headers: { "X-Modhost-Admin": "1" } };
const reload = "/admin/api/modules/http_health/reload";
const tries = (base) => ({
  get: async () => read(await fetch(base + "/admin/api/status")),
  file: async () => read(await fetch(base + "/admin/api/config/file", { referrerPolicy: "no-referrer" })),
  credentials: async () => read(await fetch(base + "/admin/api/status", { credentials: "include" })),
  opaque: async () => read(await fetch(base + "/admin/api/config/file", { mode: "no-cors", referrerPolicy: "no-referrer" })),
  document: async () => (/page-key" content="[^"]/.test(await (await fetch(base + "/admin/", { headers: { Accept: "text/html" } })).text()) ? "KEY" : "no key"),
  post: async () => read(await fetch(base + reload, change)),
  "post without a look": async () => read(await fetch(base + reload, { method: "POST", mode: "no-cors", body: "{}" })),
  beacon: async () => (navigator.sendBeacon(base + reload, new Blob(["{}"], { type: "text/plain" })), "sent"),
  form: async () => {
    const form = document.createElement("form");
    form.method = "POST"; form.action = base + reload; form.target = "of_form"; form.enctype = "text/plain";
    const frame = document.createElement("iframe"); frame.name = "of_form";
    document.body.append(frame, form);
    form.submit();
    await new Promise((go) => setTimeout(go, 500));
    return "sent";
  },
  events: () => new Promise((go) => {
    const source = new EventSource(base + "/admin/api/events", { withCredentials: true });
    source.onopen = () => go("OPEN"); source.onerror = () => go("refused");
  }),
  websocket: () => new Promise((go) => {
    const socket = new WebSocket(base.replace(/^http/, "ws") + "/admin/api/events");
    socket.onopen = () => go("OPEN"); socket.onerror = () => go("refused");
  }),
  script: () => new Promise((go) => {
    const script = document.createElement("script");
    script.src = base + "/admin/api/status"; script.onload = () => go("LOADED"); script.onerror = () => go("refused");
    document.body.append(script);
  }),
  iframe: () => framed("iframe", base + "/admin/"),
  object: () => framed("object", base + "/admin/"),
  window: () => lookInto(window.open(base + "/admin/", "w" + Math.random())),
  popup: () => { const tab = window.open("about:blank", "p" + Math.random(), "popup"); if (tab) tab.location = base + "/admin/"; return lookInto(tab); },
});
window.attack = async (bases) => {
  const acts = bases.flatMap((base) => Object.entries(tries(base)).map(([name, act]) => [name + " at " + (base || "its own origin"), act]));
  const got = await Promise.all(acts.map(async ([name, act]) => [name, String(await within(act()).catch((error) => "threw " + error.name))]));
  return Object.fromEntries(got);
};`;

/**
 * A service worker that adds a header to its pages. The header puts a page and the windows it opens
 * into one browsing context group.
 */
const worker = `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", (event) => {
  const { pathname } = new URL(event.request.url);
  if (!pathname.endsWith("/opener")) return;
  const headers = { "Content-Type": "text/html", "Cross-Origin-Opener-Policy": "same-origin" };
  event.respondWith(new Response("<!doctype html><body><script src='attempts.js'></script>", { headers }));
});`;

const page = "<!doctype html><body><script src='attempts.js'></script>";
const responses: Readonly<Record<string, readonly [string, string]>> = {
  "": ["text/html", page],
  "attempts.js": ["text/javascript", attempts],
  "worker.js": ["text/javascript", worker],
};

/**
 * An untrusted app. It serves its pages with and without a header that puts windows into one group.
 */
const stranger = `const answers = ${JSON.stringify(responses)};
export default (module) => module.provides("http", { route: {
  "GET /*": (_event, name = "") => {
    const [type, body] = answers[name.replace(/^coop\\//, "")] ?? [];
    const headers = { content_type: type, ...(name.startsWith("coop/") && { cross_origin_opener_policy: "same-origin" }) };
    return body === undefined ? undefined : { headers, body };
  },
} });
`;

let browser: Browser;
let server: DashboardServer;
let elsewhere: HttpServer;
const received: IncomingMessage[] = [];

const elsewherePort = () => (elsewhere.address() as { port: number }).port;

before(async () => {
  elsewhere = createServer((request, response) => {
    received.push(request);
    const [type = "text/plain", body = ""] = responses[(request.url ?? "").slice(1)] ?? [];
    response.setHeader("Content-Type", type);
    if (request.url?.startsWith("/toss")) response.setHeader("Set-Cookie", request.url.slice("/toss?".length));
    response.end(body);
  }).listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  [browser, server] = await Promise.all([launched(), DashboardServer.started()]);
  await server.write("mod_stranger.js", stranger);
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ name: "stranger" });
  const loaded = await fetch(`${server.admin}/admin/api/modules`, { method: "POST", headers, body });
  assert.equal(loaded.status, 200, await loaded.text());
});
after(async () => {
  await browser?.close();
  elsewhere.close();
  await server?.[Symbol.asyncDispose]();
});

/** Makes all attempts from the page, and asserts that none has read or changed anything. */
async function holds(page: Page): Promise<void> {
  // Responses of the attacker's own origin prove nothing here.
  const isOfApps = new URL(page.url()).port === String(server.port);
  const bases = [
    ...(isOfApps ? [""] : []),
    ...["localhost", "127.0.0.1"].map((name) => `http://${name}:${server.adminPort}`),
  ];
  const found = (await page.evaluate(`attack(${JSON.stringify(bases)})`)) as Record<string, string>;
  const bad = Object.entries(found).filter(([, got]) => /KEY|OPEN|LOADED|^200 \{/.test(got));
  assert.deepEqual(bad, []);
  assert.ok(Object.keys(found).length >= 30);
  const changes = await (await fetch(`${server.admin}/admin/api/changes`)).text();
  assert.doesNotMatch(changes, /reload http_health/);
}

async function inContext(use: (context: BrowserContext) => Promise<void>): Promise<void> {
  const context = await browser.newContext(DESK);
  try {
    await use(context);
  } finally {
    await context.close();
  }
}

describe("a page cannot read or use the Admin API and cannot see the dashboard", () => {
  for (const [name, address] of [
    ["if it is a page of an app at localhost", () => `http://localhost:${server.port}/stranger/`],
    ["if it is a page of an app at 127.0.0.1", () => `http://127.0.0.1:${server.port}/stranger/`],
    [
      "if it is a page of an app that shares a browsing context group with the windows it opens",
      () => `http://localhost:${server.port}/stranger/coop/`,
    ],
    ["if it is at another port of this machine", () => `http://localhost:${elsewherePort()}/`],
  ] as const) {
    test(name, async () => {
      await inContext(async (context) => {
        const page = await context.newPage();
        await page.goto(address());
        await holds(page);
      });
    });
  }

  test("if its service worker adds the header that puts the windows it opens into its group", async () => {
    await inContext(async (context) => {
      const page = await context.newPage();
      await page.goto(`${server.base}/stranger/`);
      await page.evaluate(`navigator.serviceWorker.register("worker.js").then(() => navigator.serviceWorker.ready)`);
      await page.goto(`${server.base}/stranger/opener`);
      assert.equal(
        await page.evaluate("crossOriginIsolated || window.attack !== undefined"),
        true,
        "the worker responds",
      );
      await holds(page);
    });
  });
});

describe("the dashboard is reachable", () => {
  for (const [name, address, shown] of [
    ["at its own address", () => `${server.admin}/`, "/admin/"],
    ["at its path on a port of apps", () => `${server.base}/admin/modules?search=sh`, "/admin/modules?search=sh"],
  ] as const) {
    test(name, async () => {
      await inContext(async (context) => {
        const page = await context.newPage();
        await page.goto(address());
        await page.getByText("Connected", { exact: true }).waitFor();
        assert.equal(page.url(), `${server.admin}${shown}`);
      });
    });
  }

  test("by the link of the start page, which has another origin", async () => {
    await inContext(async (context) => {
      const page = await context.newPage();
      await page.goto(`${server.base}/`);
      await page.getByRole("link", { name: "Open the dashboard" }).click();
      await page.getByText("Connected", { exact: true }).waitFor();
      assert.equal(new URL(page.url()).origin, server.admin);
    });
  });
});

describe("a session of the dashboard", () => {
  test("cannot be used or replaced by servers at other ports, although the browser sends them its cookie", async () => {
    const headers = { "Content-Type": "application/json" };
    const make = async (name: string) => {
      const body = JSON.stringify({ name, scopes: "admin" });
      const made = await fetch(`${server.admin}/admin/api/tokens`, { method: "POST", headers, body });
      return ((await made.json()) as { secret: string }).secret;
    };
    const secret = await make("ann");
    const other = await make("eve");
    const signIn = async (page: Page, token: string) => {
      const sent = { Authorization: `Bearer ${token}`, "X-Modhost-Admin": "1" };
      const attempt = `fetch("/admin/session", { method: "POST", headers: ${JSON.stringify(sent)} }).then((each) => each.json())`;
      const { page_key } = (await page.evaluate(attempt)) as { page_key: string };
      await page.evaluate(`localStorage.setItem("modhost-page-key", ${JSON.stringify(page_key)})`);
    };
    let tossed = "";
    await inContext(async (context) => {
      const page = await context.newPage();
      await page.goto(`${server.admin}/admin/`);
      await signIn(page, other);
      const [cookie] = await context.cookies();
      tossed = `${cookie?.name}=${cookie?.value}; Path=/admin/api`;
    });
    await inContext(async (context) => {
      const page = await context.newPage();
      await page.goto(`${server.admin}/admin/`);
      await signIn(page, secret);
      await page.goto(`${server.admin}/admin/`);
      await page.getByText("token ann").waitFor();

      await page.goto(`http://localhost:${elsewherePort()}/admin/look`);
      const cookie = received.findLast(({ url }) => url === "/admin/look")?.headers.cookie ?? "";
      assert.match(cookie, /^modhost_admin_/, "cookies know no ports");
      assert.ok(!cookie.includes(secret.slice(-20)));
      assert.equal(await page.evaluate("localStorage.length"), 0);
      const forged = {
        Cookie: cookie,
        Accept: "text/html",
        "Sec-Fetch-Site": "none",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
      };
      const ask = async (path: string) => (await fetch(`${server.admin}${path}`, { headers: forged })).text();
      assert.doesNotMatch(await ask("/admin/api/whoami"), /token ann/);

      await page.goto(`http://localhost:${elsewherePort()}/toss?${tossed}`);
      await page.goto(`${server.admin}/admin/`);
      await page.getByText("token ann").waitFor();
    });
  });
});
