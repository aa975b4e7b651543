import assert from "node:assert/strict";
import { executionAsyncResource } from "node:async_hooks";
import { describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createHost } from "#core/index.ts";
import { retainedTick } from "#core/util/tick_shape.ts";

describe("the shape of ticks", () => {
  it("stays the same after a garbage collection of the whole heap, once a host has started", async () => {
    setFlagsFromString("--expose-gc");
    setFlagsFromString("--allow-natives-syntax");
    const collect = runInNewContext("gc") as () => void;
    const haveSameShape = new Function("one", "other", "return %HaveSameMap(one, other)");
    const host = createHost({ config: { modules_enabled: [] } });
    try {
      await host.start();
      for (let at = 0; at < 3; at += 1) {
        await new Promise(setImmediate);
        collect();
      }
      const tick = await new Promise((resolve) => process.nextTick(() => resolve(executionAsyncResource())));
      assert.notEqual(tick, retainedTick());
      assert.equal(haveSameShape(tick, retainedTick()), true);
    } finally {
      await host.stop();
    }
  });
});
