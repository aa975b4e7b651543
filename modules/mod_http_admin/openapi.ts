/** Builds the OpenAPI document of the Admin API from all current operations. */
import type { AdminField, AdminOperation, AdminShape } from "../../core/types.ts";
import { errors } from "./errors.ts";
import { hasBody, maxLengthOf } from "./input.ts";
import type { Items } from "./items.ts";

type Json = Readonly<Record<string, unknown>>;

export function openApi(items: Pick<Items, "operations" | "shapes">, version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const { operation } of items.operations()) {
    (paths[`/admin/api${operation.path}`] ??= {})[operation.method.toLowerCase()] = described(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Admin API",
      version,
      description:
        "Inspects and changes a running server. Operations that change something require a body of application/json, or the header X-Modhost-Admin: 1.",
    },
    security: [{}, { bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: items.shapes(),
      responses: Object.fromEntries(
        Object.entries(errors).map(([code, { help }]) => [code, { description: help, ...content(named("Error")) }]),
      ),
    },
  };
}

function described(operation: AdminOperation): Json {
  const { name, help, scope, path, input = {}, isRaw, takes } = operation;
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field));
  const fields = Object.entries(input);
  const location = (field: string) => (inPath.has(field) ? "path" : "query");
  const parameters = fields
    .filter(([field]) => inPath.has(field) || !hasBody(operation))
    .map(([field, declared]) => ({
      name: field,
      in: location(field),
      required: declared.required === true,
      description: declared.describe,
      schema: schemaOf(declared),
    }));
  const body = hasBody(operation) ? fields.filter(([field]) => !inPath.has(field)) : [];
  return {
    operationId: name,
    summary: help,
    "x-scope": scope,
    parameters,
    ...(body.length === 0 ? {} : { requestBody: bodyOf(body) }),
    ...(takes === "stream" ? { requestBody: stream } : {}),
    responses: {
      200: isRaw === true ? raw(operation) : { description: help, ...content(shapeOf(operation.response)) },
      ...(operation.isChange === true ? changeFailures : {}),
      ...Object.fromEntries(
        Object.entries(errors).map(([code, { status }]) => [status, { $ref: `#/components/responses/${code}` }]),
      ),
    },
  };
}

const stream = { required: true, content: { "application/octet-stream": { schema: {} } } };

function raw({ help, response }: AdminOperation): Json {
  const isEvents = response === "Event";
  const type = isEvents ? "text/event-stream" : "*/*";
  return { description: help, content: { [type]: { schema: isEvents ? { type: "string" } : shapeOf(response) } } };
}

const changeFailures = {
  409: { description: "The change was refused, and nothing was tried", ...content(named("Change")) },
  422: { description: "The change has failed, and the previous state stays in force", ...content(named("Change")) },
};

function bodyOf(fields: readonly (readonly [string, AdminField])[]): Json {
  const properties = Object.fromEntries(
    fields.map(([name, field]) => [name, { ...schemaOf(field), description: field.describe }]),
  );
  const required = fields.filter(([, field]) => field.required === true).map(([name]) => name);
  return {
    required: required.length > 0,
    ...content({ type: "object", properties, required, additionalProperties: false }),
  };
}

function schemaOf(field: AdminField): Json {
  const { type, values } = field;
  if (values !== undefined) return { type, enum: values };
  return type === "string" ? { type, maxLength: maxLengthOf(field) } : { type };
}

function named(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function shapeOf(shape: AdminShape): Json {
  return typeof shape === "string" ? named(shape) : shape;
}

function content(schema: Json): Json {
  return { content: { "application/json": { schema } } };
}
