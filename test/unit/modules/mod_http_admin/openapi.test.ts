import assert from "node:assert/strict";
import { test } from "node:test";
import { operations } from "#modules/mod_http_admin/operations/index.ts";
import { adminHost } from "./support.ts";

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

test("the OpenAPI document contains every operation, and every reference in it resolves", async (t) => {
  const running = await adminHost(t);
  const { status, value } = await running.call<Document>("GET", "/openapi.json");
  assert.deepEqual([status, value.openapi], [200, "3.1.0"]);
  const described = Object.entries(value.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => `${operationId} ${method} ${path}`),
  );
  const declared = operations.map(({ name, method, path }) => `${name} ${method.toLowerCase()} /admin/api${path}`);
  assert.deepEqual(described.toSorted(), declared.toSorted());
  for (const [, kind = "", name = ""] of JSON.stringify(value).matchAll(/"#\/components\/(\w+)\/(\w+)"/g)) {
    assert.ok(value.components[kind]?.[name] !== undefined, `${kind}/${name}`);
  }
});

test("names and paths of operations are unique, and no GET changes anything", () => {
  assert.equal(new Set(operations.map(({ name }) => name)).size, operations.length);
  assert.equal(new Set(operations.map(({ method, path }) => `${method} ${path}`)).size, operations.length);
  for (const { name, scope, method } of operations) assert.ok(scope === "admin" || method === "GET", name);
});
