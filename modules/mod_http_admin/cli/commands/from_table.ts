/** Commands that are operations of the Admin API: name, help and options come from the table. */
import {
  adminSocket,
  type Command,
  type CommandContext,
  type CommandOption,
  type KnownNames,
  send,
  showChange,
  socketOption,
  statusOf,
  UsageError,
  withServer,
} from "../../../../core/cli/index.ts";
import type { AdminOperation, Change } from "../../../../core/types.ts";

type Given = Readonly<Record<string, unknown>>;

/** What a command adds to its operation. */
export interface CommandExtras {
  /** Fields that are given as arguments, in this order; all others are options. */
  readonly positional?: readonly string[];
  /** What an argument stands for, seen from the folder of the command. */
  resolve?(context: CommandContext, given: Given): Given;
  /** What its arguments are names of. */
  readonly completes?: KnownNames;
  /** Behind the options in --help. */
  readonly about?: string;
  /** Shows the answer; gives the exit code. Default, of an operation that changes something: its record. */
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
        const { value } = await callOperation<never>(socket, operation, resolve?.(context, fields) ?? fields);
        return show?.(context, value) ?? showChange(context, value as Change);
      }),
  };
}

/**
 * Calls an operation with its fields where it wants them: in the path, the query or the body. It may take as long as it
 * likes, on a server that says how it is.
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
