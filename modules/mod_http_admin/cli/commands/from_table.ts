/**
 * Commands that call operations of the Admin API. Their names, help and options come from the table
 * of operations.
 */
import { realpathSync } from "node:fs";
import {
  adminSocket,
  type Command,
  type CommandContext,
  type CommandOption,
  type KnownNames,
  NoServerError,
  send,
  showChange,
  socketOption,
  statusOf,
  UsageError,
  withServer,
} from "../../../../core/cli/index.ts";
import type { AdminOperation, Change } from "../../../../core/types.ts";

type Given = Readonly<Record<string, unknown>>;

/** Properties of a command that its operation does not have. */
export interface CommandExtras {
  /** Fields that are positional arguments, in this order. All others are options. */
  readonly positional?: readonly string[];
  /** Resolves arguments relative to the working directory of the command. */
  resolve?(context: CommandContext, given: Given): Given;
  /** The kind of name that each argument completes to. */
  readonly completes?: KnownNames;
  /** Text that `--help` shows after the options. */
  readonly about?: string;
  /**
   * Prints the result and returns the exit code. By default, an operation that changes something
   * prints its record.
   */
  show?(context: CommandContext, value: never): number;
}

export function commandOf(
  operation: AdminOperation,
  { positional = [], about, completes, show, resolve }: CommandExtras = {},
): Command {
  const { name, help, input = {} } = operation;
  const others = Object.entries(input).filter(([field]) => !positional.includes(field));
  const own = others.map(([field, { type, describe }]): [string, CommandOption] => {
    if (type === "boolean") return [field, { type: "boolean", help: describe }];
    return [field, { type: "string", value: field.toUpperCase(), help: describe }];
  });
  return {
    name,
    help,
    ...(positional.length === 0 ? {} : { arguments: positional.map((field) => field.toUpperCase()).join(" ") }),
    options: { ...Object.fromEntries(own), ...socketOption },
    ...(about === undefined ? {} : { about }),
    ...(completes === undefined ? {} : { completes }),
    run: (context) =>
      withServer(context, async () => {
        const fields = {
          ...argumentsOf(operation, context.args, positional),
          ...optionsOf(operation, context.options),
        };
        const socket = await adminSocket(context, context.options.socket);
        if (operation.method === "POST" && context.options.socket === undefined) await assertConfig(context, socket);
        const { value } = await callOperation<never>(socket, operation, resolve?.(context, fields) ?? fields);
        return show?.(context, value) ?? showChange(context, value as Change);
      }),
  };
}

/**
 * Two configurations may share a data folder, and a command for one must not change the server of
 * the other. @throws {NoServerError} the server has another config file than the command names
 */
async function assertConfig({ configPath }: CommandContext, socket: string): Promise<void> {
  if (configPath === undefined) return;
  const { config, pid } = await statusOf(socket);
  if (config === undefined || realPath(config) === realPath(configPath)) return;
  throw new NoServerError(
    `No server runs on ${configPath}: the one that uses its data folder (process ${pid}) runs on ${config}. Name that file, or the socket by --socket ${socket}`,
  );
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * Calls an operation with its fields in the path, the query or the body. There is no time limit,
 * because the preceding status request shows that the server responds.
 */
export async function callOperation<T>(socket: string, { method, path, input = {} }: AdminOperation, given: Given) {
  await statusOf(socket);
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given[name])));
  const rest = Object.keys(input).filter((name) => !inPath.has(name) && given[name] !== undefined);
  if (method === "POST") {
    return send<T>(socket, method, filled, Object.fromEntries(rest.map((name) => [name, given[name]])));
  }
  const query = new URLSearchParams(Object.fromEntries(rest.map((name) => [name, String(given[name])]))).toString();
  return send<T>(socket, method, query === "" ? filled : `${filled}?${query}`);
}

function argumentsOf(
  { name, input = {} }: AdminOperation,
  args: readonly string[],
  positional: readonly string[],
): Given {
  if (args.length > positional.length) throw new UsageError(`${name} takes no argument ${args[positional.length]}`);
  const missing = positional.find((field, at) => args[at] === undefined && input[field]?.required === true);
  if (missing !== undefined)
    throw new UsageError(`${name} needs ${missing.toUpperCase()}: ${input[missing]?.describe}`);
  return Object.fromEntries(positional.map((field, at) => [field, args[at]]));
}

function optionsOf({ input = {} }: AdminOperation, options: CommandContext["options"]): Given {
  return Object.fromEntries(
    Object.entries(input).flatMap(([field, { type }]) => {
      const given = options[field];
      if (given === undefined) return [];
      const value = type === "number" ? Number(given) : given;
      if (Number.isNaN(value)) throw new UsageError(`--${field} takes a number, not ${given}`);
      return [[field, value]];
    }),
  );
}
