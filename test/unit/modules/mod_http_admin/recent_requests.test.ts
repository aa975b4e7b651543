import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PerSecond } from "#modules/mod_http_admin/recent_requests.ts";
import type { FinishedRequest } from "#modules/mod_http_admin/types.ts";
import { adminHost } from "./support.ts";

describe("the latest requests", () => {
  test("contain the first requests of each second, up to a limit", () => {
    const seconds: (() => void)[] = [];
    const few = new PerSecond(2, (renew) => seconds.push(renew));
    assert.deepEqual([few.take(), few.take(), few.take(), few.take()], [true, true, false, false]);
    assert.equal(seconds.length, 1, "one timer for all requests");
    seconds.shift()?.();
    assert.deepEqual([few.take(), few.take(), few.take()], [true, true, false]);
    assert.equal(seconds.length, 1);
  });

  test("include all failures of a burst, however many other requests arrived", async (t) => {
    const host = await adminHost(t, {
      modules: [
        {
          name: "shop",
          load: (module) => module.provides("http", { route: { GET: () => "open", "GET /fail": () => 500 } }),
        },
      ],
    });
    for (let at = 0; at < 300; at += 1) await host.inject({ path: "/shop" });
    await host.inject({ path: "/shop/fail" });
    const { value } = await host.call<FinishedRequest[]>("GET", "/requests?limit=1000");
    assert.ok(value.length >= 101 && value.length <= 302, `${value.length} are stored`);
    assert.deepEqual([value.at(-1)?.path, value.at(-1)?.status], ["/shop/fail", 500]);
  });
});
