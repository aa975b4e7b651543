import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "#modules/mod_http_admin_node/history.ts";
import { Jobs } from "#modules/mod_http_admin_node/jobs.ts";
import { sharedNode, startNode } from "./support.ts";

const shared = sharedNode();

test("metrics of one hour are stored, the oldest samples are dropped, and a reload continues with them", async () => {
  const first = new History(shared.host.node);
  const begin = 1_700_000_000_000;
  for (let n = 0; n < 365; n += 1) await first.sample(begin + n * 10_000);
  const next = new History(shared.host.node);
  next.restore(first.save());
  const { interval, time, series } = next.history();
  assert.deepEqual([interval, time.length, time[0], time.at(-1)], [10, 360, begin / 1000 + 50, begin / 1000 + 3640]);
  assert.equal(series.peers.length, 360);
  // The node is offline, so it has no rates.
  assert.deepEqual([series.peers.at(-1), series.rate_in.at(-1)], [0, null]);
  assert.ok((series.repo_size.at(-1) ?? 0) > 0);
});

test("jobs are bounded, and their changes are reported, but not each of many", async () => {
  const jobs = new Jobs();
  const states: string[] = [];
  const leave = jobs.topic((job) => states.push((job as { state: string }).state));
  const start = (run: () => Promise<undefined>) => jobs.start({ kind: "pin", what: "pin", by: "test", run });
  for (let n = 0; n < 120; n += 1) {
    start(async () => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(jobs.list().length, 100);
  const waiting = jobs.start({
    kind: "gc",
    what: "gc",
    by: "test",
    isSingle: true,
    run: (signal, progress) => {
      for (let n = 0; n < 10_000; n += 1) progress(n);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  assert.throws(() => jobs.start({ kind: "gc", what: "gc", by: "test", isSingle: true, run: async () => undefined }), {
    code: 409,
  });
  assert.ok(states.length < 300);
  const never = () => new Promise<undefined>(() => undefined);
  for (let n = 0; n < 15; n += 1) start(never);
  assert.throws(() => start(never), { code: 503 });
  assert.equal((await jobs.cancel(waiting.id)).state, "cancelled");
  assert.equal(jobs.list().find(({ id }) => id === waiting.id)?.progress.done, 9999);
  leave();
});

test("the node loads without warnings where the Admin API is disabled", async (t) => {
  const host = await startNode({
    config: { modules_enabled: ["http", "http_admin_node"], modules_disabled: ["http_admin"] },
  });
  t.after(() => host.stop());
  const { status, note } = host.host.modules().find(({ name }) => name === "http_admin_node") ?? {};
  assert.deepEqual([status, note], ["loaded", undefined]);
  assert.equal((await host.fetch("/admin/api/node")).status, 404);
});
