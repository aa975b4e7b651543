import assert from "node:assert/strict";
import { test } from "node:test";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import type { Vector } from "./plan.ts";
import { Player } from "./play.ts";
import { report, runAll } from "./report.ts";

/** Contents of tens of megabytes take long to make. */
const isLong = ({ group, id }: Vector) => group === "add-big" || /shape-4561305/.test(id);

test("the known answers of the reference are given, but for those that are explained", {
  timeout: 240_000,
}, async () => {
  await using host = await startRpc({ api_offline: false });
  using player = new Player(`http://127.0.0.1:${host.http}`);
  const results = await runAll(player, /^/, (vector) => !isLong(vector));
  const { text, ok } = report(results, { verbose: false, whole: true });
  assert.ok(ok, text);
  const passed = results.filter(({ outcome }) => outcome.kind === "passes").length;
  assert.ok(passed > 500, `only ${passed} of ${results.length} pass:\n${text}`);
});
