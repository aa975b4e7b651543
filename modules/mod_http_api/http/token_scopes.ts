/** What tokens of the server open here: commands by their group and effect, or paths of one directory of the MFS. */
import type { PresentedToken, TokenNeed } from "../../../core/types.ts";
import { type Argument, isCommand } from "../rpc/command.ts";
import type { Found, Parsed } from "../rpc/parse_call.ts";
import type { Table } from "../rpc/table.ts";

/** Any token for some command opens it: clients ask for it first. */
const openToAll: ReadonlySet<string> = new Set(["version"]);

/** `paths`: the call is open as far as its paths are; they are known once it is parsed. */
export type Opened = "open" | "paths" | { readonly lacks: TokenNeed };

/** Whether a token opens a command. */
export function opened(token: PresentedToken, { node: { path, entry } }: Found): Opened {
  const effect = isCommand(entry) ? entry.effect : "read";
  const need: TokenNeed = { kind: "rpc", command: path, effect };
  if (openToAll.has(path) || token.allows(need)) return "open";
  return isCommand(entry) && pathArguments(entry.arguments).length > 0 && hasDirectory(token)
    ? "paths"
    : { lacks: need };
}

/** The first path of a call that a token does not open. */
export function closedPath(token: PresentedToken, { entry, arguments: values }: Parsed): TokenNeed | undefined {
  if (!isCommand(entry)) return undefined;
  return pathArguments(entry.arguments)
    .flatMap(({ name, mfs: use }) =>
      [values[name]].flat().map((path) => ({ kind: "mfs", path: String(path), use }) as const),
    )
    .find((need) => !token.allows(need));
}

/** What a scope of the RPC must be, where it names no group or command; undefined for one that is right, and for others. */
export function scopeFault(scope: string, table: Table): string | undefined {
  const [, path] = /^rpc:([^:]+)/.exec(scope) ?? [];
  if (path === undefined || path === "*" || table.node(path) !== undefined) return undefined;
  const [group = ""] = path.split("/");
  const { children } = table.node(group) ?? table.root;
  const known = children.size === 0 ? [group] : [...children.values()].map((child) => child.path).sort();
  return `rpc:* or rpc: with one of ${known.join(", ")}`;
}

type PathArgument = Argument & { readonly mfs: NonNullable<Argument["mfs"]> };

const pathArguments = (declared: readonly Argument[]) =>
  declared.filter((argument): argument is PathArgument => argument.mfs !== undefined);

const hasDirectory = ({ scopes }: PresentedToken) => scopes.some((scope) => scope.startsWith("mfs:"));
