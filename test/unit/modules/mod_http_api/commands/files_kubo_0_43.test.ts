/** Unflushed changes of the namespace at the level 0.43. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RpcHost, startOnline, startRpc } from "./support.ts";

/** Returns the statuses of calls, in order. */
async function statuses(host: RpcHost, calls: readonly string[]): Promise<number[]> {
  const found: number[] = [];
  for (const call of calls)
    found.push((await host.call(`files/${call}`, call.startsWith("write") ? { file: "x" } : undefined)).status);
  return found;
}

test("at 0.43, changes without flush fail at the limit until something is flushed", async (t) => {
  const options = { node_offline: true, api_level: "0.43" };
  const host = await startOnline({ "Internal.MFSNoFlushLimit": 2 }, options);
  t.after(() => host.stop());
  // A failed change also counts.
  assert.deepEqual(await statuses(host, ["mkdir?arg=/a&flush=false", "mkdir?arg=/a&flush=false"]), [200, 500]);
  assert.deepEqual(await host.failure("files/mkdir?arg=/b&flush=false"), [
    500,
    "reached limit of 2 unflushed MFS operations. To resolve: 1) run 'ipfs files flush' to persist changes, " +
      "2) use --flush=true (default), or 3) increase Internal.MFSNoFlushLimit in config",
  ]);
  const limited = [
    "mv?arg=/a&arg=/c&flush=false",
    "cp?arg=/a&arg=/c&flush=false",
    "write?arg=/f&create=true&flush=false",
  ];
  assert.deepEqual(await statuses(host, limited), [500, 500, 500]);
  const others = ["touch?arg=/a&flush=false", "chmod?arg=700&arg=/a&flush=false", "chcid?arg=/a&flush=false"];
  assert.deepEqual(await statuses(host, others), [200, 200, 200]);
  // Any flush, by any call, allows further changes.
  for (const [at, flush] of ["mkdir?arg=/z", "flush?arg=/a", "mkdir?arg=/q/r"].entries()) {
    const made = (name: string) => `mkdir?arg=/${name}${at}&flush=false`;
    assert.deepEqual(await statuses(host, [flush, made("x"), made("y"), made("w")]), [
      at === 2 ? 500 : 200,
      200,
      200,
      500,
    ]);
  }
});

test("at 0.9, there is no limit", async (t) => {
  const host = await startRpc();
  t.after(() => host.stop());
  const calls = Array.from({ length: 257 }, (_, at) => `mkdir?arg=/${at}&flush=false`);
  assert.deepEqual(new Set(await statuses(host, calls)), new Set([200]));
});
