/** The OpenAPI document of the Admin API, from the table of its operations. */
import { errors } from "./errors.ts";
import type { AnyOperation, Field, Shape } from "./operations/operation.ts";
import { shapes } from "./shapes.ts";

type Json = Readonly<Record<string, unknown>>;

export function openApi(operations: readonly AnyOperation[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of operations) {
    (paths[`/admin/api${operation.path}`] ??= {})[operation.method.toLowerCase()] = described(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Admin API",
      version,
      description:
        "Looks at a running server and changes it. What changes something takes application/json, or the header X-Modhost-Admin: 1.",
    },
    security: [{}, { bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: shapes,
      responses: Object.fromEntries(
        Object.entries(errors).map(([code, { help }]) => [code, { description: help, ...content(named("Error")) }]),
      ),
    },
  };
}

function described(operation: AnyOperation): Json {
  const { name, help, scope, method, path, input = {}, isRaw } = operation;
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field));
  const fields = Object.entries(input);
  const place = (field: string) => (inPath.has(field) ? "path" : "query");
  const parameters = fields
    .filter(([field]) => inPath.has(field) || method !== "POST")
    .map(([field, declared]) => ({
      name: field,
      in: place(field),
      required: declared.required === true,
      description: declared.describe,
      schema: schemaOf(declared),
    }));
  const body = method === "POST" ? fields.filter(([field]) => !inPath.has(field)) : [];
  return {
    operationId: name,
    summary: help,
    "x-scope": scope,
    parameters,
    ...(body.length === 0 ? {} : { requestBody: bodyOf(body) }),
    responses: {
      200: isRaw === true ? events : { description: help, ...content(shapeOf(operation.answer)) },
      ...(operation.isChange === true ? changeFailures : {}),
      ...Object.fromEntries(
        Object.entries(errors).map(([code, { status }]) => [status, { $ref: `#/components/responses/${code}` }]),
      ),
    },
  };
}

const events = {
  description: "Events, until one side ends",
  content: { "text/event-stream": { schema: { type: "string" } } },
};

const changeFailures = {
  409: { description: "The change was refused: nothing was tried", ...content(named("Change")) },
  422: { description: "The change has failed: what was there before goes on", ...content(named("Change")) },
};

function bodyOf(fields: readonly (readonly [string, Field])[]): Json {
  const properties = Object.fromEntries(
    fields.map(([name, field]) => [name, { ...schemaOf(field), description: field.describe }]),
  );
  const required = fields.filter(([, field]) => field.required === true).map(([name]) => name);
  return {
    required: required.length > 0,
    ...content({ type: "object", properties, required, additionalProperties: false }),
  };
}

const schemaOf = ({ type, values }: Field): Json => ({ type, ...(values === undefined ? {} : { enum: values }) });

function named(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function shapeOf(shape: Shape): Json {
  return typeof shape === "string" ? named(shape) : shape;
}

function content(schema: Json): Json {
  return { content: { "application/json": { schema } } };
}
