/**
 * The token scopes of the RPC: commands by their group and effect, or the paths of one directory of
 * the MFS.
 */
import type { TokenScopeKind } from "../../core/types.ts";
import type { Effect, MfsUse } from "./rpc/command.ts";
import type { Table } from "./rpc/table.ts";

/**
 * A command, such as `pin/add`, with its effect. Without these fields, the need stands for any
 * command.
 */
export type RpcNeed =
  | { readonly kind: "rpc"; readonly command: string; readonly effect: Effect }
  | { readonly kind: "rpc"; readonly command?: undefined };

/**
 * A path of the MFS with the way a command uses it. Without these fields, the need stands for any
 * path.
 */
export type MfsNeed =
  | { readonly kind: "mfs"; readonly path: string; readonly use: MfsUse }
  | { readonly kind: "mfs"; readonly path?: undefined };

interface Commands {
  /** Components of the path of a group or command; empty for all. */
  readonly command: readonly string[];
  readonly effect: Effect | undefined;
}

interface Directory {
  readonly directory: readonly string[];
  readonly readOnly: boolean;
}

const rpcPattern = /^rpc:(\*|[a-z0-9-]+(?:\/[a-z0-9-]+)*)(?::(read|write))?$/;
const mfsPattern = /^mfs:(read:)?(\/.*)$/s;

const commands: TokenScopeKind<RpcNeed, Commands> = {
  kind: "rpc",
  forms: [
    {
      form: "rpc:GROUP",
      help: "the commands of a group of the RPC, such as rpc:pin; rpc:pin/ls is a single command, rpc:* is all commands",
    },
    { form: "rpc:GROUP:read", help: "only those commands of the group that read" },
    { form: "rpc:GROUP:write", help: "only those commands of the group that change something or return a secret" },
  ],
  parse(text) {
    const [, command, effect] = rpcPattern.exec(text) ?? [];
    if (command === undefined) return undefined;
    return { command: command === "*" ? [] : command.split("/"), effect: effect as Effect | undefined };
  },
  covers({ command, effect }, need) {
    if (need.command === undefined) return true;
    if (effect !== undefined && effect !== need.effect) return false;
    const components = need.command.split("/");
    return command.every((component, at) => component === components[at]);
  },
  describe: (need) => (need.command === undefined ? "rpc:*" : `rpc:${need.command}:${need.effect}`),
};

/** Namespaces of content, which cannot be directories of the MFS. */
const contentRoots: ReadonlySet<string | undefined> = new Set(["ipfs", "ipns", "ipld"]);

const paths: TokenScopeKind<MfsNeed, Directory> = {
  kind: "mfs",
  forms: [
    {
      form: "mfs:/DIR",
      help: "the files commands of the RPC, if all their paths are in this directory of the MFS",
    },
    { form: "mfs:read:/DIR", help: "only those commands that read" },
  ],
  parse(text) {
    const [, read, path] = mfsPattern.exec(text) ?? [];
    const directory = path === undefined ? undefined : componentsOf(path);
    if (directory === undefined || contentRoots.has(directory[0])) return undefined;
    return { directory, readOnly: read !== undefined };
  },
  covers: (scope, need) => need.path === undefined || coversPath(scope, need.path, need.use),
  describe: () => "mfs:/DIR",
  refusal({ path = "" }, { name }) {
    const shown = JSON.stringify(path.length > 100 ? `${path.slice(0, 99)}…` : path);
    return `The token ${name} does not allow the path ${shown} (paths with . or .. are always refused)`;
  },
};

/** The kinds of scopes that this module declares. */
export const scopes = [commands, paths] as const;

/**
 * Returns the same kinds, with a check that new tokens name only groups and commands of the table.
 */
export function scopesFor(
  table: Table,
): readonly [TokenScopeKind<RpcNeed, Commands>, TokenScopeKind<MfsNeed, Directory>] {
  return [{ ...commands, check: ({ command }) => unknownCommand(command, table) }, paths];
}

function unknownCommand(command: readonly string[], table: Table): string | undefined {
  if (command.length === 0 || table.node(command.join("/")) !== undefined) return undefined;
  const [group = ""] = command;
  const { children } = table.node(group) ?? table.root;
  const known = children.size === 0 ? [group] : [...children.values()].map((child) => child.path).sort();
  return `rpc:* or rpc: with one of ${known.join(", ")}`;
}

function coversPath({ directory, readOnly }: Directory, path: string, use: MfsUse): boolean {
  if (readOnly && use !== "look" && use !== "copy") return false;
  const components = componentsOf(path);
  if (components === undefined) return false;
  // Content has no owner, so anyone who may write here may also copy any content.
  if (contentRoots.has(components[0])) return use === "copy" && components[0] === "ipfs" && components.length > 1;
  if (!directory.every((component, at) => component === components[at])) return false;
  if (components.length > directory.length || use === "look" || use === "copy" || use === "make") return true;
  return use === "into" && path.endsWith("/");
}

/**
 * Splits an absolute path into its components. Returns undefined for a path that is relative or
 * contains `.` or `..`. Some commands clean such paths and others do not, so a path that they could
 * interpret differently is refused.
 */
function componentsOf(path: string): string[] | undefined {
  if (!path.startsWith("/") || path.includes("\0")) return undefined;
  const components = path.split("/").filter((component) => component !== "");
  return components.some((component) => component === "." || component === "..") ? undefined : components;
}
