/** Generates `docs/reference/admin-api.md`: the operations of the Admin API, from their table. */
import type { AdminField, AdminOperation } from "#core/types.ts";
import { errors } from "#modules/mod_http_admin/errors.ts";
import { hasBody } from "#modules/mod_http_admin/input.ts";
import { anchor, code, page, table } from "./markdown.ts";

type Schema = Readonly<Record<string, unknown>>;

const base = "/admin/api";

/** An operation without its implementation. */
export type Declared = Omit<AdminOperation, "run">;

/** The operations of one module, and the shapes of their responses. */
export interface AdminPart {
  readonly title: string;
  readonly operations: readonly Declared[];
  readonly shapes: Readonly<Record<string, Schema>>;
}

export function adminApiPage(parts: readonly AdminPart[]): string {
  const shapes = parts.flatMap((part) => Object.entries(part.shapes));
  return page("Admin API", "the operations of mod_http_admin, mod_http_admin_node, mod_http_proxy and mod_backup", [
    introduction,
    ...parts.flatMap(({ title, operations }) => [`## ${title}\n\n${indexOf(operations)}`, ...operations.map(section)]),
    "## Responses",
    ...shapes.map(([name, shape]) => `### ${name}\n\n${shapeText(shape)}`),
    `## Errors\n\n${errorsText}`,
  ]);
}

const introduction = `For operators and programs: the Admin API inspects and changes a running server over HTTP. It is at the Unix socket
\`<data_path>/admin.sock\`, and at \`${base}\` of \`admin_port\`. The commands \`modhost status\`, \`reload\`, \`load\`, \`unload\`, \`stop\` and \`token\` are clients of it.

[Control a running server](../guides/operate/control.md#who-may-call-the-admin-api) says who may call. Modules [add operations of their own](module-api.md#adminoperation).
\`GET ${base}/openapi.json\` of a server describes all of them, as OpenAPI.

Operations with the scope \`read\` change nothing, and those with the scope \`admin\` may. A caller with \`admin\` has both. A request
that changes something must have \`Content-Type: application/json\` or \`X-Modhost-Admin: 1\`, which no form of a web page can send.

Fields are in the path, in the query (for GET and DELETE, and if the body is a file) or in the JSON body of a POST. Responses are JSON.

In the examples \`data\` is the option \`data_path\`. To use the port, call \`http://localhost:5282${base}/...\` without the
socket. From other machines, use \`admin_https_port\` and \`-H 'Authorization: Bearer TOKEN'\`.`;

const errorsText = `Errors have the body \`{ "error": { "code": "...", "message": "..." } }\` and the status of their code:

${table(
  ["Status", "Code", ""],
  Object.entries(errors)
    .sort(([, one], [, other]) => one.status - other.status)
    .map(([name, { status, help }]) => [String(status), code(name), help]),
)}`;

function indexOf(operations: readonly Declared[]): string {
  const rows = operations.map((operation) => {
    const { method, path, scope, help } = operation;
    return [`[${code(`${method} ${path}`)}](#${anchor(titleOf(operation))})`, scope, help];
  });
  return table(["Operation", "Scope", ""], rows);
}

const titleOf = ({ method, path }: Declared) => `${method} ${path}`;

function section(operation: Declared): string {
  const { help, scope, input = {}, isChange, name } = operation;
  const fields = Object.entries(input).map(([field, declared]) => [
    code(field),
    `${locationOf(operation, field)}${declared.required === true ? "" : ", optional"}`,
    declared.values === undefined ? declared.type : declared.values.map(code).join(", "),
    declared.describe,
  ]);
  const change =
    isChange === true ? " Status 200 if the change was made, 409 if it was rejected, 422 if it failed." : "";
  return [
    `### ${titleOf(operation)}`,
    `${help}. Scope ${code(scope)}; in OpenAPI ${code(name)}.`,
    ...(fields.length === 0 ? [] : [table(["Field", "In", "Type", ""], fields)]),
    `Response: ${responseText(operation)}.${change}`,
    `\`\`\`sh\n${example(operation)}\n\`\`\``,
  ].join("\n\n");
}

function locationOf(operation: Declared, field: string): string {
  if (operation.path.includes(`{${field}}`)) return "path";
  return hasBody(operation) ? "body" : "query";
}

function responseText({ response, isRaw }: Declared): string {
  const text = typeof response === "string" ? linkTo(response) : typeText(response);
  return isRaw === true && response === "Event" ? `server-sent events, each a ${text}` : text;
}

/** Returns a curl command with the required fields only. */
function example(operation: Declared): string {
  const { method, path, input = {}, isRaw, takes } = operation;
  const needed = Object.entries(input).filter(([, { required }]) => required === true);
  const within = (location: string) => needed.filter(([field]) => locationOf(operation, field) === location);
  const query = within("query").map(([field, declared]) => `${field}=${sample(field, declared)}`);
  const examplePath = path.replaceAll(/\{(\w+)\}/g, (_, field: string) => field.toUpperCase());
  const url = `http://localhost${base}${examplePath}${query.length === 0 ? "" : `?${query.join("&")}`}`;
  const body = within("body").map(([field, declared]) => [field, sample(field, declared)]);
  const given =
    takes === "stream"
      ? " -H 'X-Modhost-Admin: 1' --data-binary @FILE"
      : body.length > 0
        ? ` --json '${JSON.stringify(Object.fromEntries(body))}'`
        : method === "GET"
          ? ""
          : ` -X ${method} -H 'X-Modhost-Admin: 1'`;
  return `curl${isRaw === true ? " -N" : ""} --unix-socket data/admin.sock${given} ${query.length > 0 ? `'${url}'` : url}`;
}

function sample(field: string, { type, values }: AdminField): string | number | boolean {
  return values?.[0] ?? { string: field.toUpperCase(), number: 1, boolean: true }[type];
}

const linkTo = (name: string) => `[\`${name}\`](#${anchor(name)})`;

function shapeText(shape: Schema): string {
  const {
    properties,
    required = [],
    description,
  } = shape as { properties?: Schema; required?: string[]; description?: string };
  if (properties === undefined) return `${description ?? "It is"}: ${typeText(shape)}.`;
  const rows = Object.entries(properties).map(([name, field]) => [
    `${code(name)}${required.includes(name) ? "" : " (optional)"}`,
    typeText(field as Schema),
  ]);
  return table(["Field", "Type"], rows);
}

function typeText(schema: Schema): string {
  const {
    $ref,
    type,
    items,
    enum: values,
    oneOf,
    format,
    properties,
    additionalProperties,
  } = schema as {
    readonly $ref?: string;
    readonly type?: string | readonly string[];
    readonly items?: Schema;
    readonly enum?: readonly string[];
    readonly oneOf?: readonly Schema[];
    readonly format?: string;
    readonly properties?: Schema;
    readonly additionalProperties?: Schema;
  };
  if ($ref !== undefined) return linkTo($ref.slice($ref.lastIndexOf("/") + 1));
  if (oneOf !== undefined) return oneOf.map(typeText).join(", ");
  if (values !== undefined) return values.map((value) => code(JSON.stringify(value))).join(", ");
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (format === "date-time") return "time (ISO 8601)";
  if (properties !== undefined) {
    const fields = Object.entries(properties).map(([name, field]) => `${code(name)} ${typeText(field as Schema)}`);
    return `object: ${fields.join(", ")}`;
  }
  if (typeof additionalProperties === "object") return `object, by name: ${typeText(additionalProperties)}`;
  return [type ?? "any JSON value"].flat().join(" or ");
}
