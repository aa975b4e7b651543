/**
 * The data that an instance of an isolated module is made from: its options, and facts of the host.
 */
import { isOwnVariable } from "../config/index.ts";
import type { InstanceOwner } from "../module/code.ts";
import { moduleName } from "../module/locate.ts";
import type { ModuleContext } from "../module/module_context.ts";
import type { ModuleRights } from "../module/rights.ts";
import {
  type Authority,
  grantedVariables,
  isWithin,
  type PermissionLedger,
  permissionKinds,
  realPath,
} from "../permissions/index.ts";
import type {
  ModulePermissions,
  ModuleState,
  OptionDeclaration,
  OptionDeclarations,
  PermissionKind,
} from "../types.ts";
import type { WorkerTask } from "./messages.ts";
import type { OutsideNetwork } from "./network/broker.ts";
import type { ModulePorts } from "./network/module_ports.ts";
import { readablePaths } from "./policy.ts";
import { isNamedFor, isNeeded } from "./rules.ts";

export interface IsolationDeps {
  readonly context: ModuleContext;
  readonly ledger: PermissionLedger;
  /** Set in tests: answers connections in place of other hosts. */
  readonly outside?: OutsideNetwork | undefined;
  /** The ports that sandboxed modules listen on. */
  readonly ports: ModulePorts;
  hostsOf(name: string): readonly string[];
  /** Returns the seconds in which the requests of a leaving module have to end. */
  grace(): number;
  /** Called when the worker of an instance has ended without a request to do so. */
  ended(owner: InstanceOwner, reason: string): void;
}

/** Returns the maximum number of bytes that a worker may use. */
export function heapOf({ context }: IsolationDeps): number {
  return Number(context.config.value("isolated_heap"));
}

/** The rights of an isolated or sandboxed module, and their judge. */
export interface IsolatedRights {
  readonly rights: ModuleRights;
  readonly authority: Authority;
}

/** Options of the whole server that contain those of all modules. */
const wholeServer: ReadonlySet<string> = new Set(["hosts", "modules"]);

/** Options that `module.http_url` needs, in addition to `http_external_url` and `http_paths`. */
const urlOptions: ReadonlySet<string> = new Set(["http_default_host"]);

/** Whether any module may read an option: those of the host and of HTTP, without their secrets. */
function isPublic({ owner, secret }: OptionDeclaration & { readonly owner: string }): boolean {
  return (owner === "core" || owner === "http") && secret === undefined;
}

/**
 * Returns the environment variables of a worker. Variables that set options are left out: it gets
 * the options that it may read. With a grant it has only the granted ones, unless it is audited.
 */
export function environment({ rights: { settings } }: Pick<IsolatedRights, "rights">): NodeJS.ProcessEnv {
  const { grant, audit } = settings;
  if (grant !== undefined && !audit) return grantedVariables(grant.env ?? [], process.env);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOwnVariable(name)));
}

/** Counts the variables that the module has got, and those that it declares and has not. */
export function countVariables({ rights, authority }: IsolatedRights, declared: ModulePermissions): void {
  const { grant } = rights.settings;
  for (const item of new Set([...(grant?.env ?? []), ...(declared.env ?? [])])) {
    if (process.env[item] === undefined) continue;
    const permission = { kind: "env", item } as const;
    authority.handedOver(permission, authority.allows(permission));
  }
}

/**
 * Counts a permission that Node.js has refused to a sandboxed module, or of an audited one, that it
 * has used. The module's process reports it. Files that it may read without a grant are left out.
 * So are the folders above them, because Node.js itself looks at those to find files.
 */
export function countReported({ rights, authority }: IsolatedRights, kind: PermissionKind, item: string): void {
  if (rights.run !== "sandboxed" || !Object.hasOwn(permissionKinds, kind)) return;
  const isGranted = authority.allows({ kind, item });
  const path = realPath(item);
  const isOwn =
    kind === "read" && readablePaths(rights).some((readable) => isWithin(path, readable) || isWithin(readable, path));
  if (isGranted ? rights.settings.audit : !isOwn) authority.handedOver({ kind, item }, isGranted);
}

interface OwnTask extends Pick<WorkerTask, "host" | "reloading" | "depends"> {
  /** The options that the module declares. */
  readonly options: OptionDeclarations;
}

/** Returns what an instance is made from. */
export function taskOf(
  name: string,
  { options, ...own }: OwnTask,
  deps: IsolationDeps,
  isolated: IsolatedRights,
): WorkerTask {
  const { context, hostsOf } = deps;
  const { config, loadTimeout, serves } = context;
  const all = config.declarations();
  const isRestricted = isolated.rights.run === "sandboxed";
  const others = isRestricted ? othersOf(name, deps) : [];
  const isHanded = (option: string) => {
    if (wholeServer.has(option)) return false;
    if (Object.hasOwn(options, option) || isGranted(isolated, option)) return true;
    const declared = all.get(option);
    // Undeclared options may be secrets of modules that are not loaded.
    if (declared === undefined) return isNamedFor(name, option, "_", others);
    return isRestricted ? isNeeded(option) : isPublic(declared);
  };
  const declarations: Record<string, Record<string, object>> = {};
  for (const [option, { owner, ...declaration }] of all) {
    if (owner !== "core" && isHanded(option)) (declarations[owner] ??= {})[option] = declaration;
  }
  const sources = config.sources(isHanded);
  const { dataFolder } = isolated.rights.folders;
  return {
    ...own,
    hosts: hostsOf(name),
    config: isRestricted ? { ...sources, written: { ...sources.written, data_path: dataFolder } } : sources,
    declarations: declarations as unknown as WorkerTask["declarations"],
    loadTimeout,
    listening: context.listening(),
    states: isRestricted ? context.states().map(shownToSandbox) : context.states(),
    serves,
    restriction: isRestricted ? restrictionOf(isolated, [...all.keys()]) : undefined,
  };
}

/** Whether the operator has granted an option that is not the module's own. */
function isGranted({ rights: { run, settings }, authority }: IsolatedRights, option: string): boolean {
  const { grant, audit } = settings;
  if (run === "sandboxed" && audit) return true;
  if (grant === undefined) return false;
  const isGrantedItself = (item: string) => authority.allows({ kind: "options", item });
  return isGrantedItself(option) || (urlOptions.has(option) && isGrantedItself("http_external_url"));
}

function restrictionOf(isolated: IsolatedRights, declared: readonly string[]): WorkerTask["restriction"] {
  const { settings } = isolated.rights;
  return {
    options: [
      ...new Set([...declared.filter((name) => isGranted(isolated, name)), ...(settings.grant?.options ?? [])]),
    ],
    hasData: isolated.authority.allows({ kind: "write", item: "data" }),
    isAudited: settings.audit,
  };
}

/** Returns the names of the other modules: those that are configured, and those that are loaded. */
export function othersOf(module: string, { context: { config, states } }: IsolationDeps): string[] {
  const enabled = [undefined, ...config.hosts()].flatMap((host) => config.value("modules_enabled", host) ?? []);
  const names = [...(enabled as string[]).map(moduleName), ...states().map(({ name }) => name)];
  return [...new Set(names)].filter((name) => name !== module);
}

/** Leaves out what a module could learn about others: their files, notes and permissions. */
function shownToSandbox({ name, host, status, run, is_late }: ModuleState): ModuleState {
  const late = is_late === undefined ? {} : { is_late };
  return { name, host, status, run, file: undefined, note: undefined, depends: [], holds: {}, ...late };
}
