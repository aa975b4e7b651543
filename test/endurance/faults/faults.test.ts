/**
 * The short form of `npm run test:faults`: no request to a module fails because of another module.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestHost } from "#core/testing/index.ts";
import { type Fault, misbehave } from "./faults.ts";
import { folderOfFiles } from "./files.ts";

for (const [fault, isolated] of [
  ["throws", false],
  ["timers", false],
  ["exits", true],
] as const satisfies readonly (readonly [Fault, boolean])[]) {
  test(`a module that ${fault}${isolated ? ", isolated," : ""} loses no response of another module`, {
    timeout: 300_000,
  }, async () => {
    const { responses, failed, statuses } = await misbehave(fault, { isolated, requests: 100, every: 5 });
    assert.deepEqual([responses, failed], [100, 0]);
    assert.ok(statuses.size > 0);
  });
}

test("a module whose requests all block the event loop is quarantined by its share, and the others stay", {
  timeout: 240_000,
}, async () => {
  const app = (handler: string) =>
    `export const depends = ["http"]; export default (module) => module.provides("http", { route: { GET: () => { ${handler} } } });`;
  await using folder = await folderOfFiles({
    // The thread's own CPU time: a busy machine delays it, too.
    "mod_hog.js": app(
      "const end = process.threadCpuUsage().user + 120_000; while (process.threadCpuUsage().user < end); return 'held';",
    ),
    "mod_sound.js": app("return 'sound';"),
  });
  const config = {
    plugin_paths: [folder.path],
    plugin_autoload: true,
    // A low limit, so that it is exceeded even on a machine that gives it a tenth of a processor.
    quarantine_loop_share: 0.05,
    quarantine_pause: 3600,
    log_level: "warn",
  };
  await using running = await createTestHost({ config });
  const open = new Set<Promise<void>>();
  let isOut = false;
  while (!isOut) {
    const poke = async () => {
      const { status } = await running.fetch("/hog");
      isOut ||= status === 503;
    };
    const one = poke().finally(() => open.delete(one));
    open.add(one);
    // Requests arrive while others wait, but only as many as can ever get a response.
    if (open.size > 3) await Promise.race(open);
    else await sleep(20);
  }
  await Promise.all(open);
  const state = running.host.modules().find(({ name }) => name === "hog");
  assert.equal(state?.status, "quarantined");
  assert.match(state.note ?? "", /blocked the event loop for \d+ % of \d+ s/);
  assert.equal(await (await running.fetch("/sound")).text(), "sound");
});
