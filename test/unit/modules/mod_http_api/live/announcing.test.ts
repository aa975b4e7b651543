import assert from "node:assert/strict";
import { test } from "node:test";
import { announcementListener } from "../announcement_listener.ts";
import { startRpc } from "../commands/support.ts";
import { call } from "../faults/lab.ts";

const listener = announcementListener();
const { roots, mod_listener } = listener;

test("Import.FastProvide of the configuration decides if a call at the level 0.43 does not", async () => {
  const kubo043 = await startRpc({ api_level: "0.43" }, { modules: { mod_listener } });
  let text = 0;
  const set = (key: string, value: boolean) => kubo043.value(`config?arg=${key}&arg=${value}&json=true`);
  const add = async (options: string) => {
    roots.length = 0;
    const { values, message } = await call<{ Hash: string }>(kubo043, `add?${options}`, `${(text += 1)}`);
    return [values.at(-1)?.Hash ?? "", message] as const;
  };
  try {
    await set("Import.FastProvideRoot", false);
    const [before] = await add("");
    const [after] = await add("pin=false");
    await kubo043.value(`pin/update?arg=${before}&arg=${after}&unpin=false`);
    await kubo043.value(`pin/add?arg=${after}&name=again`);
    assert.deepEqual(roots, [], "not of the root");
    const [said] = await add("fast-provide-root=true");
    assert.deepEqual(roots, [said], "the call comes first");
    await set("Import.FastProvideDAG", true);
    const [whole] = await add("");
    assert.deepEqual(roots, [whole], "with all that is below");
    await set("Import.FastProvideWait", true);
    listener.online = true;
    assert.equal((await add(""))[1], "fast-provide: failed to find any peer in table");
    assert.equal((await add("fast-provide-wait=false"))[1], undefined);
  } finally {
    listener.online = false;
    await kubo043.stop();
  }
});
