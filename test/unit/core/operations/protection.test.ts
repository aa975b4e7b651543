/**
 * Options that protect apps of other modules: without the module of the option, a start and a
 * reload are refused, and an unload warns.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reconfigured } from "./reconfigured.ts";

test("a configuration is refused without the module of an option that protects apps, whoever wrote the module", async () => {
  const declaration = `{ fence: { type: "object", keys: "apps", protects: true, describe: "Apps that are fenced." } }`;
  const files = { "mod_fence.js": `export const options = ${declaration};\nexport default () => {};\n` };
  const common = { plugin_paths: ["."] };
  const fence = { one: {} };
  const said = /fence is set, but the module fence is not loaded, and the apps would be unguarded/;
  await assert.rejects(reconfigured({ ...common, fence }, [], files), said);
  await assert.rejects(reconfigured({ ...common, fnece: fence }, [], files), /write fence/);
  await using server = await reconfigured({ ...common, fence, modules_disabled: ["fence"] }, [], files);
  const enabled = { ...common, fence, modules_enabled: ["http", "fence"] };
  await server.apply(enabled);
  await assert.rejects(server.apply({ ...common, fence }), said);
  await server.host.unload("fence");
  assert.match(server.log(), /Without the module fence one is unguarded, until it is loaded again/);
});
