import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { openApi } from "#modules/mod_http_api/rpc/openapi.ts";

type Json = Readonly<Record<string, unknown>>;

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly Json[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, { schema: Json }>> };
  readonly responses: Readonly<Record<string, Json>>;
  readonly "x-command": { readonly arguments: readonly Json[]; readonly file?: Json; readonly returns: string };
}

const document = JSON.parse(openApi(table));
const operations = Object.entries(document.paths as Record<string, { post: Operation }>).map(
  ([path, { post }]) => [path.replace("/api/v0/", ""), post] as const,
);

/** Resolves a `$ref`, or returns the value itself. */
function resolved(value: Json): Json {
  const { $ref } = value as { $ref?: string };
  if ($ref === undefined) return value;
  assert.match($ref, /^#\/components\//);
  const found = $ref
    .split("/")
    .slice(1)
    .reduce<unknown>((inside, name) => (inside as Json | undefined)?.[name], document);
  assert.ok(found !== undefined, `${$ref} leads nowhere`);
  return found as Json;
}

const types = new Set(["string", "boolean", "integer", "number", "array", "object", "null"]);
const words = new Set([
  ...["type", "title", "description", "format", "minimum", "default", "const", "items", "properties", "required"],
  ...["additionalProperties", "minItems", "maxItems", "contentEncoding", "contentMediaType", "anyOf"],
]);

/** Checks that every keyword of a schema belongs to JSON Schema 2020-12 and fits the others. */
function checkSchema(schema: Json, where: string): void {
  for (const word of Object.keys(schema)) assert.ok(words.has(word), `${where}: ${word}`);
  const {
    type,
    items,
    properties,
    required = [],
    additionalProperties,
    anyOf = [],
  } = schema as {
    type?: string;
    items?: Json;
    properties?: Readonly<Record<string, Json>>;
    required?: readonly string[];
    additionalProperties?: Json;
    anyOf?: readonly Json[];
  };
  if (type !== undefined) assert.ok(types.has(type), `${where}: ${type}`);
  assert.equal(type === "array", items !== undefined, `${where}: items`);
  if (items !== undefined) checkSchema(items, `${where}[]`);
  for (const one of anyOf) checkSchema(one, `${where}|`);
  if (additionalProperties !== undefined) checkSchema(additionalProperties, `${where}{}`);
  for (const name of required) assert.ok(name in (properties ?? {}), `${where}: ${name} is required and not there`);
  for (const [name, of] of Object.entries(properties ?? {})) checkSchema(of, `${where}.${name}`);
}

describe("the OpenAPI document", () => {
  test("the OpenAPI document has exactly one path for each command", () => {
    assert.equal(document.openapi, "3.1.0");
    assert.deepEqual(
      operations.map(([path]) => path).sort(),
      table.commands().map(([path]) => path),
    );
  });

  test("the OpenAPI document names operations uniquely", () => {
    const ids = operations.map(([, { operationId }]) => operationId);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[a-z]\w*$/i);
  });

  test("the OpenAPI document describes parameters that can be sent, each once", () => {
    for (const [path, { parameters }] of operations) {
      const all = parameters.map(resolved);
      const names = all.map(({ name }) => String(name));
      assert.equal(new Set(names).size, names.length, `${path}: ${names}`);
      for (const parameter of all) {
        assert.equal(parameter.in, "query", path);
        assert.equal(typeof parameter.description, "string", path);
        checkSchema(parameter.schema as Json, `${path}?${parameter.name}`);
      }
    }
  });

  test("the OpenAPI document describes bodies and responses by consistent schemas", () => {
    for (const [path, { requestBody, responses, summary, "x-command": facts }] of operations) {
      assert.match(summary, /\.$/, path);
      if (requestBody !== undefined) {
        assert.deepEqual(Object.keys(requestBody.content), ["multipart/form-data"]);
        checkSchema(requestBody.content["multipart/form-data"]!.schema, path);
      }
      assert.equal(facts.file?.required === true, requestBody?.required === true, path);
      for (const status of ["200", "400", "403", "500"]) assert.ok(status in responses, `${path}: ${status}`);
      for (const response of Object.values(responses).map(resolved)) {
        assert.equal(typeof response.description, "string");
        for (const { schema } of Object.values((response.content ?? {}) as Record<string, { schema?: Json }>)) {
          if (schema !== undefined) checkSchema(schema, path);
        }
      }
    }
  });

  test("the OpenAPI document names the switch that a command needs", () => {
    const needed = operations.filter(([, { summary }]) => summary.includes(" Needs Experimental."));
    assert.deepEqual([...new Set(needed.map(([path]) => path.split("/")[0]))].sort(), [
      ...["filestore", "p2p", "stats", "urlstore"],
    ]);
  });

  test("the OpenAPI document has the parameters of the examples", () => {
    const shown = [...table.commands()].filter(([, { example }]) => example !== undefined);
    assert.ok(shown.length > 4);
    for (const [path, { example }] of shown) {
      const { parameters } = operations.find(([name]) => name === path)?.[1] ?? { parameters: [] };
      const names = parameters.map(({ name }) => name);
      for (const name of Object.keys(example ?? {})) assert.ok(names.includes(name), `${path}?${name}`);
    }
  });
});
