/**
 * The data that an instance of an isolated module is made from: its options, and facts of the host.
 */
import { isOwnVariable } from "../config/index.ts";
import type { InstanceOwner } from "../module/code.ts";
import type { ModuleContext } from "../module/module_context.ts";
import type { OptionDeclaration, OptionDeclarations } from "../types.ts";
import type { WorkerTask } from "./messages.ts";
import type { ModuleRights } from "./rights.ts";
import { isNamedFor, isNeeded } from "./rules.ts";

export interface IsolationDeps {
  readonly context: ModuleContext;
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

/** Whether any module may read an option: those of the host and of HTTP, without their secrets. */
function isPublic({ owner, secret }: OptionDeclaration & { readonly owner: string }): boolean {
  return (owner === "core" || owner === "http") && secret === undefined;
}

/**
 * Returns the environment variables of a worker. Variables that set options are left out: it gets
 * the options that it may read.
 */
export function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOwnVariable(name)));
}

/**
 * Returns what an instance is made from. `options`: those that the module declares. `rights`: those
 * of a sandboxed module, which gets less.
 */
export function taskOf(
  name: string,
  options: OptionDeclarations,
  { context, hostsOf }: IsolationDeps,
  own: Pick<WorkerTask, "host" | "reloading" | "depends">,
  rights?: ModuleRights,
): WorkerTask {
  const { config, loadTimeout, serves } = context;
  const all = config.declarations();
  const isHanded = (option: string) => {
    if (option === "hosts") return false;
    if (Object.hasOwn(options, option)) return true;
    const declared = all.get(option);
    // Undeclared options may be secrets of modules that are not loaded.
    if (declared === undefined) return isNamedFor(name, option) || rights?.options.includes(option) === true;
    if (rights?.options.includes(option) === true) return true;
    return isPublic(declared) && (rights === undefined || isNeeded(option));
  };
  const declarations: Record<string, Record<string, object>> = {};
  for (const [option, { owner, ...declaration }] of all) {
    if (owner !== "core" && isHanded(option)) (declarations[owner] ??= {})[option] = declaration;
  }
  return {
    ...own,
    hosts: hostsOf(name),
    config: config.sources(isHanded),
    declarations: declarations as unknown as WorkerTask["declarations"],
    loadTimeout,
    listening: context.listening(),
    states: context
      .states()
      .map((state) => (rights === undefined ? state : { ...state, file: undefined, note: undefined })),
    serves,
  };
}
