/** `npm run test:browser`: tests the dashboard's pages of the host in a browser. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { confirmed, DESK, faultsOfAccess, launched, opened, PHONE, paths, settled } from "./pages.ts";
import { DashboardServer, shop } from "./server.ts";

let browser: Browser;
let server: DashboardServer;

before(async () => {
  [browser, server] = await Promise.all([launched(), DashboardServer.started()]);
});
after(async () => {
  await browser?.close();
  await server?.[Symbol.asyncDispose]();
});

describe("every page of the dashboard", () => {
  for (const [name, options] of [
    ["a desk, light", DESK],
    ["a desk, dark", { ...DESK, colorScheme: "dark" }],
    ["a phone, light", PHONE],
    ["a phone, dark", { ...PHONE, colorScheme: "dark" }],
  ] as const) {
    test(`passes the accessibility checks and does not scroll sideways on ${name}`, async () => {
      for (const path of paths) {
        await using tab = await opened(browser, `${server.admin}/admin/${path}`, { ...options, bypassCSP: true });
        await settled(tab.page);
        assert.deepEqual(await faultsOfAccess(tab.page), [], path);
        const wide = await tab.page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert.ok(Number(wide) <= 0, `${path} is ${wide} pixels too wide`);
      }
    });
  }

  test("loads less than 100 KB the first time", async () => {
    for (const path of ["", "routes", "files"]) {
      const context = await browser.newContext(DESK);
      const page = await context.newPage();
      let bytes = 0;
      const session = await context.newCDPSession(page);
      await session.send("Network.enable");
      session.on("Network.loadingFinished", ({ encodedDataLength }) => {
        bytes += encodedDataLength;
      });
      await page.goto(`${server.admin}/admin/${path}`);
      await settled(page);
      assert.ok(bytes < 100_000, `${path}: ${bytes} bytes`);
      await context.close();
    }
  });

  test("and its actions are usable with the keyboard alone", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/`);
    const { page } = tab;
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to content");
    for (let steps = 0; steps < 30; steps += 1) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate("document.activeElement.textContent")) === "Modules") break;
    }
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Modules" }).waitFor();
    for (let steps = 0; steps < 60; steps += 1) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate("document.activeElement.getAttribute('aria-label')")) === "Reload shop") break;
    }
    await page.keyboard.press("Enter");
    await page.getByText("shop was reloaded.").waitFor();
    await page.getByRole("link", { name: "Configuration", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("log_level");
    await page.getByRole("button", { name: "log_level", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
});

describe("a user of the dashboard", () => {
  test("can choose light or dark permanently, and reach the search with a key", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/modules`);
    const { page } = tab;
    const back = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    assert.equal(await back(), "rgb(255, 255, 255)");
    await page.getByLabel("Colours").selectOption("Dark");
    assert.equal(await back(), "rgb(20, 23, 27)");
    await page.goto(`${server.admin}/admin/`);
    await page.locator("canvas").first().waitFor();
    assert.equal(await back(), "rgb(20, 23, 27)");
    await page.getByLabel("Colours").selectOption("System");
    assert.equal(await back(), "rgb(255, 255, 255)");
    await page.goto(`${server.admin}/admin/modules`);
    await settled(page);
    await page.keyboard.press("/");
    await page.keyboard.type("http_health");
    await page.getByRole("row").nth(1).getByText("http_health").waitFor();
    assert.equal(await page.getByRole("row").count(), 2);
  });
});

describe("the page of modules", () => {
  test("shows where a module runs, and which permissions it declares, has and uses", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/modules/stock`);
    const { page } = tab;
    await page.getByText("isolated, in a worker thread").waitFor();
    const row = async (text: string) =>
      page.getByRole("table", { name: "Permissions" }).getByRole("row", { name: text }).first().innerText();
    assert.match(await row("see the environment variable PATH"), /yes\s+yes\s+1\s+0/);
    assert.match(await row("see the environment variable HOME"), /yes\s+no\s+0\s+1/);
    assert.match(await row("read /srv/pictures"), /yes\s+no, not enforced\s+not counted\s+not counted/);
    assert.match(await row("call every function of http_health"), /no\s+yes\s+0\s+0/);
    await page.getByText('modules: { stock: { grant: { env: ["HOME"] } } }').waitFor();
  });

  test("shows the layers that restrict a sandboxed module", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/modules/locked`);
    const { page } = tab;
    await page.getByText("sandboxed, in a process of its own").waitFor();
    const layers = page.getByRole("table", { name: "Layers" });
    assert.match(await layers.getByRole("row", { name: "landlock" }).innerText(), /\bon\b/);
    assert.match(await layers.getByRole("row", { name: "seccomp" }).innerText(), /\bon\b/);
  });

  test("shows a reload of another window, and the record and the responses of the module show it, too", async () => {
    await using one = await opened(browser, `${server.admin}/admin/modules/shop`);
    await using other = await opened(browser, `${server.admin}/admin/audit`);
    await server.write("mod_shop.js", shop("closed on Sundays"));
    await one.page.getByRole("button", { name: "Reload shop" }).click();
    await one.page.getByText("shop was reloaded.").waitFor();
    await other.page.getByRole("button", { name: "reload shop" }).first().waitFor();
    assert.equal(await (await fetch(`${server.base}/shop/`)).text(), "closed on Sundays");
  });

  test("shows the position of an error in a module, whose old code keeps running until a fixed version is reloaded", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/modules`);
    const { page } = tab;
    await server.write("mod_shop.js", `${shop("never")}\nthis is no code;`);
    await page.getByRole("button", { name: "Reload shop" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("this is no code;").waitFor();
    assert.match((await dialog.textContent()) ?? "", /mod_shop\.js:\d+/);
    assert.equal(await (await fetch(`${server.base}/shop/`)).text(), "closed on Sundays");
    await page.getByRole("button", { name: "Close" }).click();
    await server.write("mod_shop.js", shop("open again"));
    await page.getByRole("button", { name: "Reload shop" }).click();
    await page.getByText("shop was reloaded.").waitFor();
    assert.equal(await (await fetch(`${server.base}/shop/`)).text(), "open again");
  });
});

describe("the editor of the config file", () => {
  test("rejects a wrong file with the position of the error, and shows the plan before it applies a correct one", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/config/file`);
    const { page } = tab;
    const text = page.getByRole("textbox", { name: "Text of the config file" });
    await text.fill(server.config("log_level: loud"));
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByText("This text cannot be applied").waitFor();
    assert.match((await page.locator("main").textContent()) ?? "", /log_level/);
    assert.ok(await page.getByRole("button", { name: "Save and apply" }).isDisabled());
    await text.fill(server.config("log_levle: warn"));
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByText("Nothing reads the option log_levle: is log_level meant?").waitFor();
    await text.fill(server.config("log_level: warn"));
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByText("This would change").waitFor();
    assert.match((await page.locator("main").textContent()) ?? "", /log_level: .* → .*warn/);
    await page.getByRole("button", { name: "Save and apply" }).click();
    await page.getByText("The configuration is saved and in force.").waitFor();
    await page.goto(`${server.admin}/admin/config?search=log_level`);
    await page.getByRole("row", { name: /log_level.*warn.*Config file/ }).waitFor();
  });
});

describe("the page of middleware", () => {
  test("shows which middleware runs before each app, and updates its counts live", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/middleware`);
    const { page } = tab;
    const guard = page.getByRole("region", { name: "guard of shop" });
    await guard.getByText("not 192.0.2.1").waitFor();
    const count = () => guard.locator("dt", { hasText: "Requests" }).locator("+ dd").textContent();
    const before = Number(await count());
    await fetch(`${server.base}/shop/`);
    while (Number(await count()) <= before) await page.waitForTimeout(100);
    await page.goto(`${server.admin}/admin/routes`);
    await page.getByLabel("Path").fill("/shop/");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("The request first passes middleware: guard of shop.").waitFor();
  });
});

describe("the page of upstreams", () => {
  test("can disable and enable an upstream, and shows its state", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/upstreams`);
    const { page } = tab;
    const status = async () => (await fetch(`${server.base}/mirror/`)).status;
    assert.equal(await status(), 200);
    await page.getByRole("row", { name: /mirror.*healthy/ }).waitFor();
    await page.getByRole("button", { name: /^Drain/ }).click();
    await page.getByRole("row", { name: /mirror.*drained/ }).waitFor();
    assert.equal(await status(), 503);
    await page.getByRole("button", { name: /^Use again/ }).click();
    await page.getByRole("row", { name: /mirror.*healthy/ }).waitFor();
    assert.equal(await status(), 200);
  });
});

describe("the pages of requests, routes and the log", () => {
  test("update live, and show hostile names as text", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/requests`);
    const { page } = tab;
    await settled(page);
    const hostile = "/shop/items/%3Cimg%20src=x%20onerror=document.title='pwned'%3E%E2%80%AEgnp.exe";
    await fetch(server.base + hostile);
    await fetch(`${server.base}/shop/fail`);
    await page
      .getByRole("row", { name: /onerror/ })
      .first()
      .waitFor();
    await page
      .getByRole("row", { name: /500.*\/shop\/fail/ })
      .first()
      .waitFor();
    assert.doesNotMatch(await page.title(), /pwned/);
    await page.getByRole("link", { name: "Log", exact: true }).click();
    await page.getByText("out of stock").first().waitFor();
    await page.getByRole("link", { name: "Routes", exact: true }).click();
    await page.getByRole("row", { name: /GET \/shop\/items\/\*/ }).waitFor();
  });
});

describe("an event between the loading of a page and the start of its event stream", () => {
  test("is shown, too", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/`);
    const { page } = tab;
    await settled(page);
    const requested = Promise.withResolvers<void>();
    const missed = Promise.withResolvers<void>();
    await page.route("**/admin/api/events?*requests*", async (route) => {
      requested.resolve();
      await missed.promise;
      await route.continue();
    });
    await page.getByRole("link", { name: "Requests", exact: true }).click();
    await settled(page);
    await requested.promise;
    await fetch(`${server.base}/shop/items/between`);
    missed.resolve();
    await page
      .getByRole("row", { name: /items\/between/ })
      .first()
      .waitFor();
  });
});

describe("a long log", () => {
  test("with lines of several rows has the height of all rows, and dragging scrolls to the right row", async () => {
    const MANY = 300;
    for (let at = 0; at < MANY; at += 1) await fetch(`${server.base}/shop/say/${at}`);
    await using tab = await opened(browser, `${server.admin}/admin/log?text=said`);
    const { page } = tab;
    await settled(page);
    const box = page.getByRole("group", { name: "Log" });
    const atEnd = () => box.evaluate((element) => element.scrollTop + element.clientHeight >= element.scrollHeight - 1);
    while (!(await atEnd())) {
      await box.evaluate((element) => element.scrollBy(0, element.clientHeight));
      await page.waitForTimeout(50);
    }
    const rows = page.getByRole("row").filter({ hasText: "said" });
    assert.match((await rows.last().textContent()) ?? "", /said 0/);
    const { height } = (await rows.last().boundingBox()) ?? { height: 0 };
    assert.ok(height > 60, "three lines");
    const whole = await box.evaluate(({ scrollHeight }) => scrollHeight);
    assert.ok(Math.abs(whole / height - MANY) < 2, `${whole} pixels for ${MANY} rows of ${height}`);
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
    const middle = rows.filter({ hasText: `said ${MANY / 2 - 3}` });
    await middle.waitFor();
    const { top, bottom } = await box.evaluate((element) => element.getBoundingClientRect().toJSON());
    const { y } = (await middle.boundingBox()) ?? { y: 0 };
    assert.ok(y > top && y < bottom, "the middle of the log is visible");
  });
});

describe("the page of tokens", () => {
  test("makes a token, shows it once and revokes it", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/tokens`);
    const { page } = tab;
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Name", { exact: true }).fill("deploy");
    await page.getByText("All forms").click();
    await page.getByText("the whole Admin API").waitFor();
    await page.getByLabel("Scopes").fill("admin:read");
    await page.getByRole("button", { name: "Create" }).click();
    const secret = (await page.getByRole("dialog").locator("code").first().textContent()) ?? "";
    const status = () => fetch(`${server.admin}/admin/api/status`, { headers: { Authorization: `Bearer ${secret}` } });
    assert.equal((await status()).status, 200);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("button", { name: "Revoke deploy" }).click();
    await confirmed(page, "Revoke");
    await page.getByText("The token deploy was revoked.").waitFor();
    assert.equal((await status()).status, 401);
  });
});

describe("a restart of the server", () => {
  test("can be requested in the dashboard, and a new process takes over", async () => {
    await using other = await DashboardServer.started();
    const pid = async () => {
      const response = await fetch(`${other.admin}/admin/api/status`).catch(() => undefined);
      return ((await response?.json()) as { pid: number } | undefined)?.pid;
    };
    const before = await pid();
    let now = before;
    try {
      await using tab = await opened(browser, `${other.admin}/admin/`);
      const { page } = tab;
      await page.getByRole("button", { name: "Restart" }).click();
      await confirmed(page, "Restart");
      while (now === undefined || now === before) {
        await page.waitForTimeout(200);
        now = await pid();
      }
      await page.getByText(`process ${now}`).waitFor();
    } finally {
      if (now !== undefined && now !== before) process.kill(now, "SIGKILL");
    }
  });

  test("is reported, and the page continues afterwards", async () => {
    await using tab = await opened(browser, `${server.admin}/admin/modules`);
    const { page } = tab;
    await page.getByText("Connected", { exact: true }).waitFor();
    await server.kill();
    await page.getByText("Not connected. Trying again…").waitFor();
    await server.start();
    await page.getByText("Connected again").waitFor();
    await page.getByRole("button", { name: "Reload shop" }).click();
    await page.getByText("shop was reloaded.").waitFor();
  });
});
