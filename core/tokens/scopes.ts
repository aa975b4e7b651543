/** What scopes say, and what they open. */
import type { MfsUse, TokenEffect, TokenNeed } from "../types.ts";

/** Every form of a scope, for help and errors. */
export const scopeForms = [
  {
    form: "rpc:GROUP",
    help: "the commands of a group of the RPC, such as rpc:pin; rpc:pin/ls is one command, rpc:* all",
  },
  { form: "rpc:GROUP:read", help: "those of them that only look" },
  { form: "rpc:GROUP:write", help: "those of them that change something or hand out a secret, and no others" },
  {
    form: "mfs:/DIR",
    help: "the files commands of the RPC, as far as all their paths lie in one directory of the MFS",
  },
  { form: "mfs:read:/DIR", help: "those of them that only look" },
  { form: "app:NAME", help: "apps that ask for tokens by this name; app:* all of them" },
  { form: "admin:read", help: "what the Admin API shows: source lines of failed reloads and the log, too" },
  { form: "admin", help: "the whole Admin API" },
  { form: "pinning:USER", help: "the pins of this user of the pinning service" },
  { form: "metrics", help: "the figures for Prometheus" },
  { form: "*", help: "everything" },
] as const;

export type Scope =
  | { readonly kind: "all" }
  | { readonly kind: "rpc"; readonly command: readonly string[]; readonly effect: TokenEffect | undefined }
  | { readonly kind: "mfs"; readonly directory: readonly string[]; readonly readOnly: boolean }
  | { readonly kind: "app"; readonly name: string }
  | { readonly kind: "admin"; readonly access: "read" | "admin" }
  | { readonly kind: "metrics" }
  | { readonly kind: "pinning"; readonly user: string };

const rpcPattern = /^rpc:(\*|[a-z0-9-]+(?:\/[a-z0-9-]+)*)(?::(read|write))?$/;
const mfsPattern = /^mfs:(read:)?(\/.*)$/s;
const pinningPattern = /^pinning:([\w.@-]+)$/;
const appPattern = /^app:(\*|[\w.-]+)$/;

/** Namespaces of content, which are no directories of the MFS. */
const contentRoots: ReadonlySet<string | undefined> = new Set(["ipfs", "ipns", "ipld"]);

/** Undefined for a text that is no scope. */
export function parseScope(text: string): Scope | undefined {
  if (text === "*") return { kind: "all" };
  if (text === "metrics") return { kind: "metrics" };
  if (text === "admin") return { kind: "admin", access: "admin" };
  if (text === "admin:read") return { kind: "admin", access: "read" };
  const rpc = rpcPattern.exec(text);
  if (rpc !== null) {
    const [, command = "*", effect] = rpc;
    return {
      kind: "rpc",
      command: command === "*" ? [] : command.split("/"),
      effect: effect as TokenEffect | undefined,
    };
  }
  const app = appPattern.exec(text);
  if (app !== null) return { kind: "app", name: app[1] as string };
  const pinning = pinningPattern.exec(text);
  if (pinning !== null) return { kind: "pinning", user: pinning[1] as string };
  const mfs = mfsPattern.exec(text);
  const directory = mfs === null ? undefined : componentsOf(mfs[2] as string);
  if (directory === undefined || contentRoots.has(directory[0])) return undefined;
  return { kind: "mfs", directory, readOnly: mfs?.[1] !== undefined };
}

/** Does a scope open what is needed? */
export function covers(scope: Scope, need: TokenNeed): boolean {
  if (scope.kind === "all") return true;
  switch (need.kind) {
    case "rpc-any":
      return scope.kind === "rpc" || scope.kind === "mfs";
    case "rpc":
      return scope.kind === "rpc" && coversCommand(scope, need.command, need.effect);
    case "mfs":
      return scope.kind === "mfs" && coversPath(scope, need.path, need.use);
    case "app":
      return scope.kind === "app" && (scope.name === "*" || scope.name === need.name);
    case "admin":
      return scope.kind === "admin" && (scope.access === "admin" || need.access === "read");
    case "metrics":
    case "pinning":
      return scope.kind === need.kind;
  }
}

/** A need as a scope that would open it. */
export function scopeFor(need: TokenNeed): string {
  switch (need.kind) {
    case "rpc-any":
      return "rpc:*";
    case "rpc":
      return `rpc:${need.command}:${need.effect}`;
    case "mfs":
      return "mfs:/DIR";
    case "app":
      return `app:${need.name}`;
    case "admin":
      return need.access === "read" ? "admin:read" : "admin";
    case "metrics":
      return "metrics";
    case "pinning":
      return "pinning:USER";
  }
}

function coversCommand({ command, effect }: Scope & { kind: "rpc" }, asked: string, done: TokenEffect): boolean {
  if (effect !== undefined && effect !== done) return false;
  const components = asked.split("/");
  return command.every((component, at) => component === components[at]);
}

function coversPath({ directory, readOnly }: Scope & { kind: "mfs" }, path: string, use: MfsUse): boolean {
  if (readOnly && use !== "look" && use !== "copy") return false;
  const components = componentsOf(path);
  if (components === undefined) return false;
  // Content has no owner: whoever may write here may copy it from anywhere.
  if (contentRoots.has(components[0])) return use === "copy" && components[0] === "ipfs" && components.length > 1;
  if (!directory.every((component, at) => component === components[at])) return false;
  if (components.length > directory.length || use === "look" || use === "copy" || use === "make") return true;
  return use === "into" && path.endsWith("/");
}

/**
 * The components of an absolute path; undefined for one that is relative or climbs. Commands read paths in several ways
 * (some clean them, some do not): a path on which they could disagree is none.
 */
function componentsOf(path: string): string[] | undefined {
  if (!path.startsWith("/") || path.includes("\0")) return undefined;
  const components = path.split("/").filter((component) => component !== "");
  return components.some((component) => component === "." || component === "..") ? undefined : components;
}
