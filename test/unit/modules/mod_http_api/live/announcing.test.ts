import assert from "node:assert/strict";
import { test } from "node:test";
import { failure, type LowLevelNode, type Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import type { Module } from "#core/types.ts";
import { startRpc } from "../commands/support.ts";
import { call } from "../faults/lab.ts";

type Network = Awaited<ReturnType<LowLevelNode["network"]>>;

const roots: string[] = [];
/** Whether the node says that it is online; then it knows no peer. */
let online = false;

/** Hears which roots the network is to be told of; the node itself is offline. */
function mod_listener(module: Module): void {
  const { lowLevel } = module.depends("node") as unknown as Node;
  lowLevel.announce = (cids: readonly CID[]) => {
    roots.push(...cids.map(String));
  };
  const { network } = lowLevel;
  const provide = () => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(failure("ROUTING_TABLE_EMPTY")) }),
  });
  Object.defineProperty(lowLevel, "online", { get: () => online });
  lowLevel.network = async (...how) => (online ? ({ routing: { provide } } as unknown as Network) : network(...how));
}

test("what a call at the level 0.43 does not say of it, Import.FastProvide of the configuration does", async () => {
  const today = await startRpc({ api_level: "0.43" }, { modules: { mod_listener } });
  let text = 0;
  const set = (key: string, value: boolean) => today.value(`config?arg=${key}&arg=${value}&json=true`);
  const add = async (options: string) => {
    roots.length = 0;
    const { values, message } = await call<{ Hash: string }>(today, `add?${options}`, `${(text += 1)}`);
    return [values.at(-1)?.Hash ?? "", message] as const;
  };
  try {
    await set("Import.FastProvideRoot", false);
    const [before] = await add("");
    const [after] = await add("pin=false");
    await today.value(`pin/update?arg=${before}&arg=${after}&unpin=false`);
    await today.value(`pin/add?arg=${after}&name=again`);
    assert.deepEqual(roots, [], "not of the root");
    const [said] = await add("fast-provide-root=true");
    assert.deepEqual(roots, [said], "the call comes first");
    await set("Import.FastProvideDAG", true);
    const [whole] = await add("");
    assert.deepEqual(roots, [whole], "with all that is below");
    await set("Import.FastProvideWait", true);
    online = true;
    assert.equal((await add(""))[1], "fast-provide: failed to find any peer in table");
    assert.equal((await add("fast-provide-wait=false"))[1], undefined);
  } finally {
    online = false;
    await today.stop();
  }
});
