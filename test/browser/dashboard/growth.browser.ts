/**
 * `npm run test:browser -- --long`: checks that pages under load do not grow. The short form takes
 * half a minute.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { heapOf, launched, opened, settled } from "./pages.ts";
import { DashboardServer } from "./server.ts";

const SECONDS = process.argv.includes("--long") ? 600 : 30;

let browser: Browser;
let server: DashboardServer;

before(async () => {
  [browser, server] = await Promise.all([launched(), DashboardServer.started()]);
});
after(async () => {
  await browser?.close();
  await server?.[Symbol.asyncDispose]();
});

describe(`pages that are open for ${SECONDS} s of requests`, () => {
  for (const path of ["", "requests"]) {
    test(`do not grow: /admin/${path}`, async (t) => {
      await using tab = await opened(browser, `${server.admin}/admin/${path}`);
      const { page } = tab;
      await settled(page);
      let isOver = false;
      const load = (async () => {
        while (!isOver) {
          await Promise.all(
            Array.from({ length: 20 }, (_, at) => fetch(`${server.base}/shop/items/${at}`).then((each) => each.text())),
          );
          await page.waitForTimeout(100);
        }
      })();
      // The rows and plots of a page reach their limit after a while.
      await page.waitForTimeout((SECONDS * 1000) / 3);
      const first = await heapOf(page);
      const nodes = await page.locator("*").count();
      await page.waitForTimeout((SECONDS * 1000 * 2) / 3);
      const last = await heapOf(page);
      const then = await page.locator("*").count();
      isOver = true;
      await load;
      t.diagnostic(`heap ${first} bytes, then ${last}; elements ${nodes}, then ${then}`);
      assert.ok(last < first * 1.3 + 2_000_000, `${first} bytes became ${last}`);
      assert.ok(then < nodes * 1.2 + 50, `${nodes} elements became ${then}`);
    });
  }
});
