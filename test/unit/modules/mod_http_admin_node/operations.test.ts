import assert from "node:assert/strict";
import { test } from "node:test";
import { operations } from "#modules/mod_http_admin_node/operations/index.ts";
import { shapes } from "#modules/mod_http_admin_node/shapes.ts";

test("operations of the node have unique names and paths, change things only by POST, and return declared types", () => {
  for (const { name, path, method, scope, response } of operations) {
    assert.match(`${name} ${path}`, /^node_\w+ \/node(?:\/|$)/);
    assert.equal(scope === "admin", method === "POST", name);
    if (typeof response === "string") assert.ok(Object.hasOwn(shapes, response), `${name}: ${response}`);
  }
  for (const [, name = ""] of JSON.stringify([operations, shapes]).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    assert.ok(Object.hasOwn(shapes, name), name);
  }
});

test("every change of the node is recorded, by the operation or by the job", () => {
  const own = ["node_gc", "node_verify", "node_pin_add", "node_job_cancel", "node_files_upload"];
  const unrecorded = operations.filter(({ scope, records }) => scope === "admin" && records === undefined);
  assert.deepEqual(unrecorded.map(({ name }) => name).toSorted(), own.toSorted());
});
