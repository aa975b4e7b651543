import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { hostOf, stateOf } from "./support.ts";

test("a module that needs something that is not ready is loaded once it is, with its dependants; until then its paths respond with 503", async (t) => {
  let begun: (() => Promise<void>) | undefined;
  let away: Error | undefined = Object.assign(new Error("the database is away"), { retry_after: 5 });
  const running = await hostOf(
    t,
    {
      async data() {
        await begun?.();
        if (away !== undefined) throw new Error("does not open", { cause: away });
      },
      app(module) {
        module.depends("data");
        module.depends("http");
        module.provides("http", { route: { "GET /": () => "served" } });
      },
      broken() {
        throw new Error("for good");
      },
    },
    { config: { modules_enabled: ["http"] } },
  );
  for (const name of ["data", "app"]) assert.equal(stateOf(running, name)?.is_late, true, name);
  assert.equal(stateOf(running, "broken")?.is_late, undefined);
  const ask = async () => (await running.fetch("/app/")).status;
  assert.equal(await ask(), 503);
  const again = Promise.withResolvers<void>();
  const shown = Promise.withResolvers<void>();
  begun = () => {
    again.resolve();
    return shown.promise;
  };
  await again.promise;
  // The paths of the module respond with 503 during an attempt to load it, too.
  const meanwhile = await ask().finally(shown.resolve);
  assert.equal(meanwhile, 503);
  away = undefined;
  await eventually("it is served", async () => (await ask()) === 200);
  assert.equal(stateOf(running, "data")?.status, "loaded");
  assert.equal((await running.fetch("/nothing")).status, 404);
  assert.equal(stateOf(running, "broken")?.status, "failed");
});
