/** Builds the OpenAPI 3.1 document from the command table. */

import { type Argument, type Command, type NamedOption, type Option, summaryOf } from "./command.ts";
import type { SinceLevel } from "./levels.ts";
import type { Fields, Scalar, Shape } from "./shape.ts";
import { globalOptionNames, type Table } from "./table.ts";

type Json = Readonly<Record<string, unknown>>;

const scalars: Readonly<Record<Scalar, Json>> = {
  string: { type: "string" },
  bool: { type: "boolean" },
  int: { type: "integer", format: "int32" },
  int32: { type: "integer", format: "int32" },
  int64: { type: "integer", format: "int64" },
  uint: { type: "integer", minimum: 0 },
  uint64: { type: "integer", minimum: 0 },
  float64: { type: "number", format: "double" },
  time: { type: "string", format: "date-time" },
  duration: { type: "integer", format: "int64", description: "Nanoseconds" },
  base64: { type: "string", contentEncoding: "base64" },
  bytes: { type: "string" },
  link: { type: "object", properties: { "/": { type: "string" } }, required: ["/"] },
  any: {},
};

const optionTypes: Readonly<Record<Option["type"], Json>> = {
  bool: scalars.bool,
  int: scalars.int,
  int64: scalars.int64,
  uint: scalars.uint,
  uint64: scalars.uint64,
  float64: scalars.float64,
  string: scalars.string,
  list: { type: "array", items: scalars.string },
};

function schemaOf(shape: Shape): Json {
  if (typeof shape === "string") return scalars[shape];
  if (!("kind" in shape)) return { type: "array", items: schemaOf(shape[0]) };
  if (shape.kind === "map") return { type: "object", additionalProperties: schemaOf(shape.of) };
  if (shape.kind === "nullable") return { anyOf: [schemaOf(shape.of), { type: "null" }] };
  return objectSchema(shape);
}

function objectSchema({ fields, optional, name }: Fields): Json {
  const properties = Object.fromEntries(Object.entries(fields).map(([key, of]) => [key, schemaOf(of)]));
  const required = Object.keys(fields).filter((key) => !optional.includes(key));
  return {
    ...(name === undefined ? {} : { title: name }),
    type: "object",
    properties,
    ...(required.length > 0 ? { required } : {}),
  };
}

export interface OpenApiOptions {
  /**
   * Include everything that is served, also commands and options that came with a later level.
   * These are marked by `x-since`.
   */
  readonly served?: boolean;
}

/** Returns the document as JSON text. By default it has what the level of the table lists. */
export function openApi(table: Table, { served = false }: OpenApiOptions = {}): string {
  const paths: Record<string, Json> = {};
  for (const [path, command] of served ? table.served() : table.commands()) {
    paths[`/api/v0/${path}`] = { post: operation(table, path, command, served) };
  }
  const text = (description: string) => ({ description, content: { "text/plain": { schema: scalars.string } } });
  const document = {
    openapi: "3.1.0",
    info: {
      title: "Node RPC API",
      version: table.level.traits.version,
      description: "Commands are called by POST. A response with several values has one JSON value per line.",
    },
    security: [{}, { bearer: [] }, { basic: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" }, basic: { type: "http", scheme: "basic" } },
      parameters: Object.fromEntries(
        listed(table.root.options, served).map(([name, known]) => [name, parameterOf(known)]),
      ),
      responses: {
        refused: text("The call is invalid: an argument or a flag"),
        forbidden: text("The caller, or the web page that calls, has no access"),
        failed: failedResponse("The command failed"),
      },
    },
  };
  return `${JSON.stringify(document)}\n`;
}

/** Returns the visible options by their long names. */
const listed = (options: ReadonlyMap<string, NamedOption>, served: boolean) =>
  [...options].filter(([name, { name: long, option }]) => {
    const isShown = option.hidden !== true || (served && option.since !== undefined);
    return name === long && isShown;
  });

const sinceOf = ({ since }: SinceLevel): Json => (since === undefined ? {} : { "x-since": since });

function failedResponse(description: string): Json {
  const schema = {
    type: "object",
    properties: { Message: scalars.string, Code: scalars.int, Type: { const: "error" } },
    required: ["Message", "Code", "Type"],
  };
  return { description, content: { "application/json": { schema } } };
}

function operation(table: Table, path: string, command: Command, served: boolean): Json {
  const options = listed(table.node(path)?.options ?? new Map(), served);
  const own = options.filter(([name]) => !globalOptionNames.has(name));
  const shared = options.filter(([name]) => globalOptionNames.has(name));
  const reference = (response: string) => ({ $ref: `#/components/responses/${response}` });
  return {
    operationId: path.replaceAll(/[/-](.)/g, (_, letter: string) => letter.toUpperCase()),
    summary: summaryOf(command),
    tags: [path.split("/", 1)[0]],
    ...(command.deprecated === true ? { deprecated: true } : {}),
    ...(served ? sinceOf(command) : {}),
    parameters: [
      ...argumentParameters(command.arguments),
      ...own.map(([, known]) => ({ ...parameterOf(known), ...(served ? sinceOf(known.option) : {}) })),
      ...shared.map(([name]) => ({ $ref: `#/components/parameters/${name}` })),
    ],
    ...bodyOf(command),
    responses: {
      200: success(command),
      400: reference("refused"),
      403: reference("forbidden"),
      500: reference("failed"),
    },
    "x-command": commandFacts(command),
  };
}

/** Facts that OpenAPI cannot express but the command line needs. */
function commandFacts({ arguments: declared, file, returns }: Command): Json {
  return { arguments: declared.map(({ bytes: _, ...rest }) => rest), file, returns: returns.form };
}

/** All arguments share one query parameter, `arg`, which is repeated. */
function argumentParameters(declared: readonly Argument[]): Json[] {
  if (declared.length === 0) return [];
  const least = declared.filter(({ required }) => required === true).length;
  const most = declared.some(({ variadic }) => variadic === true) ? undefined : declared.length;
  const description = declared.map(({ name, help }, at) => `${at + 1}. \`${name}\`: ${help}`).join("\n");
  const fromBody = declared.some(({ stdin }) => stdin !== undefined);
  const schema = {
    type: "array",
    items: scalars.string,
    minItems: fromBody ? 0 : least,
    ...(most ? { maxItems: most } : {}),
  };
  return [
    { name: "arg", in: "query", description, required: least > 0 && !fromBody, style: "form", explode: true, schema },
  ];
}

function parameterOf({ name, option }: NamedOption): Json {
  const defaults = option.default === undefined ? {} : { default: option.default };
  return {
    name,
    in: "query",
    description: option.help,
    ...(option.deprecated === true ? { deprecated: true } : {}),
    ...(option.experimental === true ? { "x-experimental": true } : {}),
    ...(option.aliases === undefined ? {} : { "x-aliases": option.aliases }),
    schema: { ...optionTypes[option.type], ...defaults },
  };
}

function bodyOf({ file, arguments: declared }: Command): Json {
  const lines = declared.at(-1)?.stdin !== undefined;
  if (file === undefined && !lines) return {};
  const description = file?.help ?? `Values of \`${declared.at(-1)?.name}\`, one per line`;
  const content = { type: "string", contentMediaType: "application/octet-stream" };
  const part = file?.many === true ? { type: "array", items: content } : content;
  const schema = { type: "object", properties: { file: part } };
  return {
    requestBody: { description, required: file?.required === true, content: { "multipart/form-data": { schema } } },
  };
}

function success({ returns }: Command): Json {
  const descriptions = { value: "One value", stream: "Values, one per line", bytes: "Bytes", nothing: "Nothing" };
  const description = descriptions[returns.form];
  if (returns.form === "nothing") return { description };
  if (returns.form === "bytes") return { description, content: { "text/plain": {} } };
  return { description, content: { "application/json": { schema: schemaOf(returns.shape) } } };
}
