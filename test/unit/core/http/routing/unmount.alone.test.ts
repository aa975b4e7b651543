/** Tests what a service still knows about an app that was unmounted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AppMount, MiddlewareLayer } from "#core/http/index.ts";
import type { HttpProvider, Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { collectGarbage } from "#test/support/heap.ts";
import { TestService } from "#test/support/service.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const owner = { name: "m", host: "*", log, on_release: () => () => undefined } as unknown as Module;

function mountIn({ service }: TestService, provider: HttpProvider, takesLate = false): AppMount {
  const mount = new AppMount({ name: "m", base: "/m", host: "*", owner, provider, cors: undefined, takesLate });
  service.mount(mount);
  return mount;
}

const names = ({ service }: TestService) => service.active().map((request) => request.describe());
const countOf = ({ service }: TestService) => service.metrics().active.get("m");

test("an app that is unmounted is forgotten, and no other one is", async () => {
  await using test = await TestService.start({ route: { "GET /": () => "app" } });
  const passing = async () => {
    const mount = mountIn(test, { route: { "GET /": () => "m" } });
    assert.equal(await (await fetch(test.url("/m/"))).text(), "m");
    test.service.unmount(mount);
    await mount.retire(0);
    return new WeakRef(mount);
  };
  const mount = await passing();
  assert.equal(await (await fetch(test.url("/app/"))).text(), "app");
  await eventually("it is collected", async () => {
    await collectGarbage();
    return mount.deref() === undefined;
  });
});

test("requests of an unmounted app are reported, also those that were still on their way to it", async () => {
  await using test = await TestService.start({ route: {} });
  const found = Promise.withResolvers<void>();
  const responded = Promise.withResolvers<string>();
  let requested = 0;
  const wait = async (_context: unknown, next: () => Promise<unknown>) => {
    requested += 1;
    await found.promise;
    await next();
  };
  test.service.putBefore([new MiddlewareLayer({ middleware: wait }, owner)]);
  const mount = mountIn(test, { route: { "GET /": () => responded.promise } }, true);
  const response = fetch(test.url("/m/"));
  await eventually("the middleware has the request", () => requested === 1);
  test.service.unmount(mount);
  await mount.retire(0);
  assert.deepEqual([names(test), countOf(test)], [[], undefined]);
  found.resolve();
  await eventually("the app has it", () => mount.active.size === 1);
  assert.equal(names(test).length, 1);
  assert.match(names(test)[0] ?? "", /GET \/m\//);
  assert.equal(countOf(test), 1);
  responded.resolve("late");
  assert.equal(await (await response).text(), "late");
  await eventually("it is over", () => countOf(test) === undefined);
});

test("an app that is mounted again while it has a request is reported once", async () => {
  await using test = await TestService.start({ route: {} });
  const responded = Promise.withResolvers<string>();
  const mount = mountIn(test, { route: { "GET /": () => responded.promise } });
  const response = fetch(test.url("/m/"));
  await eventually("the app has it", () => mount.active.size === 1);
  test.service.unmount(mount);
  assert.equal(names(test).length, 1);
  test.service.mount(mount);
  assert.deepEqual([names(test).length, countOf(test)], [1, 1]);
  responded.resolve("done");
  assert.equal(await (await response).text(), "done");
  await eventually("it is over", () => countOf(test) === 0);
});
