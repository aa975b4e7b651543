/**
 * Which calls a token of the server allows: commands by their group and effect, or paths of one
 * directory of the MFS.
 */
import type { PresentedToken } from "../../../core/types.ts";
import { type Argument, isCommand, type MfsUse } from "../rpc/command.ts";
import type { FoundCommand, Parsed } from "../rpc/parse_call.ts";
import type { MfsNeed, RpcNeed } from "../scopes.ts";

/** Any token that opens a command also opens this one, because clients call it first. */
const openToAll: ReadonlySet<string> = new Set(["version"]);

/**
 * Whether a token opens a command. `paths`: that depends on the paths of the call, which are known
 * after parsing.
 */
export type ScopeDecision = "open" | "paths" | { readonly lacks: RpcNeed };

/** A token needs a scope for at least one command of the RPC. */
export const anyCommand: RpcNeed = { kind: "rpc" };
const anyPath: MfsNeed = { kind: "mfs" };

/** Returns whether a token opens any command, at least for some paths of the MFS. */
export const opensCommands = (token: PresentedToken) => token.allows(anyCommand) || token.allows(anyPath);

/** Returns whether a token opens a command. */
export function scopeDecision(token: PresentedToken, { node: { path, entry } }: FoundCommand): ScopeDecision {
  const effect = isCommand(entry) ? entry.effect : "read";
  const need: RpcNeed = { kind: "rpc", command: path, effect };
  if (openToAll.has(path) || token.allows(need)) return "open";
  return isCommand(entry) && pathArguments(entry.arguments).length > 0 && token.allows(anyPath)
    ? "paths"
    : { lacks: need };
}

/** Returns the first path of the call that the token does not open; undefined if it opens all. */
export function firstClosedPath(token: PresentedToken, parsed: Parsed, open: "open" | "paths"): MfsNeed | undefined {
  const { entry, arguments: values, options } = parsed;
  if (!isCommand(entry)) return undefined;
  const needOf =
    (use: MfsUse) =>
    (path: unknown): MfsNeed => ({ kind: "mfs", path: String(path), use });
  const given = pathArguments(entry.arguments).flatMap(({ name, mfs }) => [values[name]].flat().map(needOf(mfs)));
  const closed = open === "paths" ? given.find((need) => !token.allows(need)) : undefined;
  if (closed !== undefined || token.allows(writesFiles)) return closed;
  // A command outside of the MFS may have an option that writes there.
  const optional = Object.entries(entry.options).flatMap(([name, { mfs }]) =>
    mfs === undefined || options[name] === undefined ? [] : [needOf(mfs)(options[name])],
  );
  return optional.find((need) => !token.allows(need));
}

const writesFiles: RpcNeed = { kind: "rpc", command: "files/write", effect: "write" };

type PathArgument = Argument & { readonly mfs: NonNullable<Argument["mfs"]> };

const pathArguments = (declared: readonly Argument[]) =>
  declared.filter((argument): argument is PathArgument => argument.mfs !== undefined);
