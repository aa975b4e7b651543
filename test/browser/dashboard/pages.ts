/** What the tests of the dashboard do in a browser, in the words of somebody who looks at it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const axe = readFileSync(fileURLToPath(import.meta.resolve("axe-core")), "utf8");

export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
export const DESK: BrowserContextOptions = { viewport: { width: 1280, height: 860 } };

/** Every page of the dashboard. */
export const paths = [
  "",
  ...[
    "modules",
    "modules/shop",
    "routes",
    "middleware",
    "upstreams",
    "requests",
    "log",
    "config",
    "config/file",
    "certificates",
    "tokens",
    "audit",
  ],
  ...["node", "node/peers", "node/pins", "node/remote", "node/keys", "node/bitswap", "node/config", "files", "explore"],
];

export function launched(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}

/**
 * A tab that fails the test when its page throws, logs an error, breaks its policy or asks for
 * anything elsewhere.
 */
export async function opened(browser: Browser, url: string, options: BrowserContextOptions = DESK) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("pageerror", ({ message }) => faults.push(message));
  page.on("console", (message) => {
    // What a browser itself says of an answer that is no success, or of a server that is away, is
    // part of some tests.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text()))
      faults.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !/^(?:data|blob):/.test(request.url()))
      faults.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  await page.locator("main h1").waitFor();
  return {
    page,
    async [Symbol.asyncDispose]() {
      await context.close();
      assert.deepEqual(faults, []);
    },
  };
}

/** Waits until nothing of the page says that it is loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
}

/**
 * Presses a button of the dialog that is open, and waits until that has closed. Until then what
 * lies behind it takes no focus: text that a test fills in there goes to the dialog.
 */
export async function confirmed(page: Page, button: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: button, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

/**
 * What a checker of accessibility finds. The policy of the page lets no script in: it is checked
 * without.
 */
export async function faultsOfAccess(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`)) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  );
}

/** The bytes of the page's heap that are in use, after what is not needed has gone. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}
