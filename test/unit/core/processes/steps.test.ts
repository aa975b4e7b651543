/** What a process that begins later is told of what was done to modules. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Steps } from "#core/processes/steps.ts";

const step = (kind: "load" | "unload" | "reload", name: string, host?: string) => ({ kind, name, host });

test("the last thing done to a module counts, whether it was named by path or by name", () => {
  const steps = new Steps();
  steps.add(step("load", "/somewhere/mod_shop.ts"));
  steps.add(step("reload", "shop"));
  steps.add(step("load", "more"));
  steps.add(step("unload", "shop"));
  assert.deepEqual(steps.all(), [step("load", "more"), step("unload", "shop")]);
});

test("a configuration that is applied brings back what was unloaded, and leaves what was loaded beside it", () => {
  const steps = new Steps();
  steps.add(step("load", "more"));
  steps.add(step("unload", "shop"));
  steps.add({ kind: "apply" });
  assert.deepEqual(steps.all(), [step("load", "more")]);
});
