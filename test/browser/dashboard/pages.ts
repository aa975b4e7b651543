/** Actions of a user in a browser, for the tests of the dashboard. */
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
    "modules/stock",
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
 * Opens a tab that fails the test if its page throws, logs an error, violates its policy or
 * requests anything from another server.
 */
export async function opened(browser: Browser, url: string, options: BrowserContextOptions = DESK) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("pageerror", ({ message }) => faults.push(message));
  page.on("console", (message) => {
    // The browser's own messages about an error status or an unreachable server are part of some
    // tests.
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

/** Waits until no part of the page shows that it is loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
}

/**
 * Presses a button of the open dialog and waits until the dialog has closed. Until then the page
 * behind it gets no focus: text that a test fills in there would go to the dialog.
 */
export async function confirmed(page: Page, button: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: button, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

/**
 * Returns the findings of an accessibility checker. The policy of the page would block the
 * checker's script, so the policy is turned off.
 */
export async function faultsOfAccess(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`)) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  );
}

/** Returns the used bytes of the page's heap after a garbage collection. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}
