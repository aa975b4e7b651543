/** What commands a server has, as its OpenAPI document tells: the command line has no table of its own. */
import { text } from "node:stream/consumers";
import { type Answered, exchange, failureText } from "./exchange.ts";
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
  /** Of every command. */
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

/** Commands by path, with those that came later than the level of the server. @throws Error when the server cannot be asked */
export async function readSurface(server: Server): Promise<ReadonlyMap<string, RpcCommand>> {
  const answer = await exchange(server, "GET", "/api/openapi.json?served=true");
  if (answer.status !== 200) throw await refusal(server, answer);
  return surfaceOf(await text(answer.body));
}

/** Why a server does not tell its commands, with what its operator or the caller can do about it where that is known. */
async function refusal({ origin: { origin, hostname } }: Server, answer: Answered): Promise<Error> {
  const { status, headers } = answer;
  const reason = await failureText(answer);
  if (status === 308 && headers.location !== undefined && URL.canParse(headers.location, origin)) {
    const place = new URL(headers.location, origin).origin;
    return new Error(`The server at ${origin} takes calls at ${place} alone: --api ${place}`);
  }
  const told = reason.startsWith(`${status} `) ? reason : `${status} ${reason}`;
  const isNamed = !reason.includes("Unknown host: ");
  const remedy = isNamed ? "" : `; name ${hostname} in its option hosts, or --api a host that is there`;
  return new Error(`The server at ${origin} does not tell its commands: ${told}${remedy}`);
}

/** Commands by path, from the text of an OpenAPI document of the API. */
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

/** The level with which it came, where that is not the first. */
const sinceText = ({ "x-since": since }: { readonly "x-since"?: string }) => (since === undefined ? "" : ` [${since}]`);

function optionOf(parameter: Parameter, shared: boolean): RpcOption {
  const { name, description = "", schema, deprecated = false, "x-aliases": aliases = [] } = parameter;
  const marks = `${parameter["x-experimental"] === true ? " Experimental." : ""}${deprecated ? " Deprecated." : ""}${sinceText(parameter)}`;
  const kind = schema.type === "boolean" ? "flag" : schema.type === "array" ? "list" : "value";
  return { name, aliases, kind, help: `${description}${marks}`, default: schema.default, shared };
}
