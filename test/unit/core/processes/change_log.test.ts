/** The changes that a process repeats when it starts later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeLog } from "#core/processes/change_log.ts";

const change = (kind: "load" | "unload" | "reload", name: string, host?: string) => ({ kind, name, host });

test("the last change of a module counts, whether the module was named by path or by name", () => {
  const log = new ChangeLog();
  log.add(change("load", "/somewhere/mod_shop.ts"));
  log.add(change("reload", "shop"));
  log.add(change("load", "more"));
  log.add(change("unload", "shop"));
  assert.deepEqual(log.all(), [change("load", "more"), change("unload", "shop")]);
});

test("applying a configuration loads unloaded modules again, and keeps those that were loaded in addition", () => {
  const log = new ChangeLog();
  log.add(change("load", "more"));
  log.add(change("unload", "shop"));
  log.add({ kind: "apply" });
  assert.deepEqual(log.all(), [change("load", "more")]);
});
