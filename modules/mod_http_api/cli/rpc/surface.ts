/**
 * Reads the commands of a server from its OpenAPI document, since the command line has no table of
 * its own.
 */
import { text } from "node:stream/consumers";
import { exchange, failureText, type RpcResponse } from "./exchange.ts";
import type { Server } from "./server.ts";

export interface RpcArgument {
  readonly name: string;
  readonly help: string;
  readonly required?: boolean;
  readonly variadic?: boolean;
  readonly stdin?: "lines" | "first";
}

export interface RpcOption {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly kind: "flag" | "value" | "list";
  readonly help: string;
  readonly default?: unknown;
  /** Whether every command has this option. */
  readonly shared: boolean;
}

export interface RpcFile {
  readonly name: string;
  readonly help: string;
  readonly required?: boolean;
  readonly many?: boolean;
}

export interface RpcCommand {
  readonly path: string;
  readonly help: string;
  readonly deprecated: boolean;
  readonly arguments: readonly RpcArgument[];
  readonly options: readonly RpcOption[];
  readonly file: RpcFile | undefined;
  readonly returns: "value" | "stream" | "bytes" | "nothing";
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly "x-aliases"?: readonly string[];
  readonly "x-experimental"?: boolean;
  readonly "x-since"?: string;
  readonly schema: { readonly type?: string; readonly default?: unknown };
}

interface Document {
  readonly paths: Readonly<Record<string, { readonly post?: Operation }>>;
  readonly components: { readonly parameters: Readonly<Record<string, Parameter>> };
}

interface Operation {
  readonly summary: string;
  readonly deprecated?: boolean;
  readonly "x-since"?: string;
  readonly parameters: readonly Parameter[];
  readonly "x-command": Pick<RpcCommand, "arguments" | "file" | "returns">;
}

const prefix = "/api/v0/";

/**
 * Resolves to the commands by path, including those that came after the level of the server.
 *
 * @throws Error if the server cannot be reached or refuses /
 */
export async function readSurface(server: Server): Promise<ReadonlyMap<string, RpcCommand>> {
  const response = await exchange(server, "GET", "/api/openapi.json?served=true");
  if (response.status !== 200) throw await refusal(server, response);
  return surfaceOf(await text(response.body));
}

/**
 * Explains why a server does not list its commands, with a remedy for its operator or the caller
 * where one is known.
 */
async function refusal({ origin: { origin, hostname } }: Server, response: RpcResponse): Promise<Error> {
  const { status, headers } = response;
  const reason = await failureText(response);
  if (status === 308 && headers.location !== undefined && URL.canParse(headers.location, origin)) {
    const allowedOrigin = new URL(headers.location, origin).origin;
    return new Error(`The server at ${origin} only accepts calls at ${allowedOrigin}: use --api ${allowedOrigin}`);
  }
  const reasonWithStatus = reason.startsWith(`${status} `) ? reason : `${status} ${reason}`;
  const isNamed = !reason.includes("Unknown host: ");
  const remedy = isNamed ? "" : `; add ${hostname} to its option hosts, or use --api with a host that is in it`;
  return new Error(`The server at ${origin} does not list its commands: ${reasonWithStatus}${remedy}`);
}

/** Returns the commands by path, from the text of an OpenAPI document of the API. */
export function surfaceOf(document: string): ReadonlyMap<string, RpcCommand> {
  const { paths, components } = JSON.parse(document) as Document;
  const commands = new Map<string, RpcCommand>();
  for (const [target, { post }] of Object.entries(paths)) {
    if (post === undefined || !target.startsWith(prefix)) continue;
    const path = target.slice(prefix.length);
    commands.set(path, commandOf(path, post, components.parameters));
  }
  return commands;
}

function commandOf(path: string, operation: Operation, shared: Document["components"]["parameters"]): RpcCommand {
  const options = operation.parameters.flatMap((parameter) => {
    const name = parameter.$ref?.split("/").at(-1);
    const meant = name === undefined ? parameter : shared[name];
    return meant === undefined || meant.name === "arg" ? [] : [optionOf(meant, name !== undefined)];
  });
  const { arguments: declared, file, returns } = operation["x-command"];
  const { summary, deprecated = false } = operation;
  const help = `${summary}${sinceText(operation)}`;
  return { path, help, deprecated, arguments: declared, options, file, returns };
}

/**
 * Returns the level that introduced a command or an option, for its help; empty for the first
 * level.
 */
const sinceText = ({ "x-since": since }: { readonly "x-since"?: string }) => (since === undefined ? "" : ` [${since}]`);

function optionOf(parameter: Parameter, shared: boolean): RpcOption {
  const { name, description = "", schema, deprecated = false, "x-aliases": aliases = [] } = parameter;
  const marks = `${parameter["x-experimental"] === true ? " Experimental." : ""}${deprecated ? " Deprecated." : ""}${sinceText(parameter)}`;
  const kind = schema.type === "boolean" ? "flag" : schema.type === "array" ? "list" : "value";
  return { name, aliases, kind, help: `${description}${marks}`, default: schema.default, shared };
}
