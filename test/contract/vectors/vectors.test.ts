import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import type { Vector } from "./plan.ts";
import { Player } from "./play.ts";
import { groups, playGroup, type Result, report } from "./report.ts";

/** Content of tens of megabytes takes long to make: only `npm run vectors` plays these. */
const isLong = ({ group, id }: Vector) => group === "add-big" || /shape-4561305/.test(id);

/** Vectors of level 0.43 whose bodies have a thousand parts, or are large. */
const isLongLater = ({ group }: Vector) => /sharding|profiles|file links/.test(group);

test("the test vectors of Kubo 0.43 pass at that level, except for those that are left", async () => {
  const level = "0.43";
  await using host = await startRpc({ api_level: level });
  using player = new Player(`http://127.0.0.1:${host.http}`);
  const results: Result[] = [];
  for (const group of groups((vector) => !isLongLater(vector), level))
    results.push(...(await playGroup(player, group)));
  const { text, ok } = report(results, { verbose: false, whole: false, level });
  assert.ok(ok, text);
});

describe("the test vectors of the reference pass, except for those that are explained:", () => {
  let host: RpcHost;
  let player: Player;
  const all: Result[] = [];

  before(async () => {
    host = await startRpc({ node_offline: false });
    player = new Player(`http://127.0.0.1:${host.http}`);
  });
  after(async () => {
    player?.[Symbol.dispose]();
    await host?.stop();
  });

  for (const group of groups((vector) => !isLong(vector))) {
    test(group.name, async () => {
      const results = await playGroup(player, group);
      all.push(...results);
      const { text, ok } = report(results, { verbose: false, whole: false });
      assert.ok(ok, text);
    });
  }

  test("every explanation belongs to a vector, and more than 500 vectors pass", (context) => {
    // A group was selected by its name.
    if (all.length === 0) return context.skip("no group was played");
    const { text, ok } = report(all, { verbose: false, whole: true });
    assert.ok(ok, text);
    const passed = all.filter(({ outcome }) => outcome.kind === "passes").length;
    assert.ok(passed > 500, `only ${passed} of ${all.length} pass:\n${text}`);
  });
});
