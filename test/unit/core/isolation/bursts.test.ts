/**
 * Many messages of an isolated or sandboxed module at once: the host serves others in between.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { runModes, runningAs } from "#test/support/run_modes.ts";
import { pluginHost } from "../module/support.ts";

const EVENTS = 300;

const files = {
  "mod_bursts.js": `export const isolated = true;
export default (module) => {
  module.hook("bursts-go", ({ ends }) => {
    for (let n = 1; n <= ${EVENTS}; n += 1) module.announce_event("bursts-event", { n });
    if (ends) setImmediate(() => process.exit(3));
  });
};`,
  // Each event takes its hook a millisecond.
  "mod_listener.js": `export default (module) => {
  module.hook("bursts-event", ({ n }) => {
    globalThis.burstEvents.push({ n, turn: globalThis.burstTurn });
    for (const until = performance.now() + 1; performance.now() < until; );
  });
  globalThis.wantBurst = (data) => module.announce_event("bursts-go", data);
};`,
};

for (const { mode, runner, skip } of runModes) {
  for (const ends of [false, true]) {
    test(`${ends ? `the last events of a ${runner} that ends` : `a burst of events from a ${runner}`} are delivered in several turns of the event loop`, {
      skip,
    }, async (t) => {
      const heard: { n: number; turn: number }[] = [];
      const wantBurst = (_data: { ends: boolean }) => undefined;
      const globals = Object.assign(globalThis, { burstEvents: heard, burstTurn: 0, wantBurst });
      let isOn = true;
      t.after(() => (isOn = false));
      const next = () => {
        globals.burstTurn += 1;
        if (isOn) setImmediate(next);
      };
      await pluginHost(t, files, runningAs(mode, files));
      next();
      globals.wantBurst({ ends });
      await eventually("all events are heard", () => heard.length === EVENTS);
      assert.deepEqual(
        heard.map(({ n }) => n),
        Array.from({ length: EVENTS }, (_, at) => at + 1),
      );
      const turns = new Set(heard.map(({ turn }) => turn));
      assert.ok(turns.size >= 6, `they were heard in ${turns.size} turns`);
    });
  }
}
