/** Derives the rules for the process of a module from its grant. */
import { dirname, resolve } from "node:path";
import { invalidOption, type ModhostError } from "../util/errors.ts";
import { permissionKinds } from "./kinds.ts";
import { absolutePath, DATA, isWithin, realPath } from "./paths.ts";
import type { OwnFolders } from "./set.ts";
import type { ModuleSettings, Namespaces } from "./settings.ts";

/** A file or folder that no grant may contain. */
export interface GuardedPath {
  readonly path: string;
  /** A noun for the sentence "it contains ...". */
  readonly what: string;
  /** Whether single files and folders below it may be granted. */
  readonly isOpenBelow?: boolean;
}

/** The facts about the server and the module that a policy is made from. */
export interface PolicyFacts extends OwnFolders {
  readonly name: string;
  /** The module's file. */
  readonly file: string;
  /** Its own folder; undefined for a single file, which shares its folder with others. */
  readonly root: string | undefined;
  /** Files and folders of the server and of other modules. */
  readonly guarded: readonly GuardedPath[];
  /** Files and folders with code, which no module may change. */
  readonly code: readonly string[];
  /** Folders with the packages that it can import. */
  readonly packages: readonly string[];
  /** Files and folders of the server's package, which every sandboxed module can read. */
  readonly server: readonly string[];
  /** The environment of the server. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The rules by which the kernel restricts the process of a module. Paths are absolute and real. */
export interface Policy {
  /** Files and folders that it may read. */
  readonly read: readonly string[];
  /** Folders in which it may read, create, change and remove files. */
  readonly write: readonly string[];
  /** Programs that it may run; without any, it starts no process. */
  readonly run: readonly string[];
  readonly addons: boolean;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly namespaces: Namespaces;
  /** Whether nothing is enforced, and uses are only listed. */
  readonly isAudited: boolean;
}

/** Folders with facts about, and access to, the whole machine. */
const machine: readonly GuardedPath[] = [
  { path: "/proc", what: "facts about all processes" },
  { path: "/sys", what: "the settings of the kernel" },
  { path: "/dev", what: "the devices of the machine" },
];

/**
 * Returns the policy for a module.
 * @throws {ModhostError} OPTION_INVALID for a grant that contains what belongs to the server or to
 * other modules
 */
export function policyOf({ grant = {}, audit, namespaces }: ModuleSettings, facts: PolicyFacts): Policy {
  const { name, file, root, folder, dataFolder, packages, env } = facts;
  const at = (field: string) => `modules.${name}.${field}`;
  const own = realPath(root ?? file);
  const real = (item: string) => realPath(absolutePath(item, folder, dataFolder));
  const assertUnexposed = (readable: string, words: string, remedy: string) => {
    const exposed = guards(facts).find(({ path }) => isWithin(path, readable));
    if (exposed === undefined) return;
    const allowed = `${words}, which it can read, contains ${exposed.what} (${exposed.path}): ${remedy}`;
    throw invalidOption(at("run"), "sandboxed", allowed);
  };
  assertUnexposed(own, `its own folder ${own}`, "move the module into a folder of its own");
  for (const path of facts.server)
    assertUnexposed(realPath(path), `the server's package`, "move that to another folder");
  const read = (grant.read ?? []).map((item) => {
    const path = real(item);
    const refuse = refusal(at("grant.read"), item);
    if (!isWithin(path, own)) assertOpen(path, facts, refuse);
    assertNoLink(item, path, facts, refuse);
    return path;
  });
  const write = (grant.write ?? []).map((item) => {
    const path = real(item);
    const refuse = refusal(at("grant.write"), item);
    if (!isWithin(path, own)) assertOpen(path, facts, refuse);
    assertNoCode(path, own, facts, refuse);
    assertNoLink(item, path, facts, refuse);
    return path;
  });
  const run = (grant.run ?? []).map((item) => {
    const path = real(item);
    assertNoLink(item, path, facts, refusal(at("grant.run"), item));
    return path;
  });
  return {
    read: [...new Set([own, ...packages.map(realPath), ...read])],
    write: [...new Set(write)],
    run: [...new Set(run)],
    addons: grant.addons === true,
    env: audit ? othersVariables(env) : grantedVariables(grant.env ?? [], env),
    namespaces,
    isAudited: audit,
  };
}

/** Returns the variables of the environment that are granted and set. */
export function grantedVariables(
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const set = names.flatMap((name) => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(set);
}

/** Returns the variables that an audited module gets: all that set no options. */
function othersVariables(env: PolicyFacts["env"]): Record<string, string> {
  return grantedVariables(
    Object.keys(env).filter((name) => permissionKinds.env.fault(name) === undefined),
    env,
  );
}

type Refuse = (allowed: string) => ModhostError;

const refusal =
  (path: string, item: string): Refuse =>
  (allowed) =>
    invalidOption(path, item, allowed);

function guards({ guarded }: PolicyFacts): GuardedPath[] {
  return [...guarded, ...machine].map((each) => ({ ...each, path: realPath(each.path) }));
}

/** Refuses a path that contains what is guarded, or is a part of it. */
function assertOpen(path: string, facts: PolicyFacts, refuse: Refuse): void {
  if (path === "/") throw refuse("it is the whole file system: name the folders that the module needs");
  const data = realPath(facts.dataFolder);
  if (isWithin(path, data)) return;
  for (const { path: guarded, what, isOpenBelow = false } of guards(facts)) {
    if (isWithin(guarded, path)) throw refuse(`it contains ${what} (${guarded})`);
    if (!isOpenBelow && isWithin(path, guarded)) throw refuse(`it is a part of ${what} (${guarded})`);
  }
}

/**
 * Refuses a link in the module's own folder that leads out of it. The author of the module made it,
 * and the operator has only read the item of the grant.
 */
function assertNoLink(item: string, path: string, { root, folder }: PolicyFacts, refuse: Refuse): void {
  if (root === undefined || item === DATA || !isWithin(resolve(folder, item), folder)) return;
  if (!isWithin(path, realPath(folder))) throw refuse(`it is a link to ${path}: write that path if this is meant`);
}

/** Refuses a path in which code lies that the server or a module would run. */
function assertNoCode(path: string, own: string, facts: PolicyFacts, refuse: Refuse): void {
  const all = [own, facts.file, ...facts.packages, ...facts.code].map(realPath);
  const inside = all.find((each) => isWithin(each, path));
  if (inside !== undefined) throw refuse(`it contains code (${inside}), which no module may change`);
  const data = realPath(facts.dataFolder);
  const isData = isWithin(path, data);
  // Below its own folder a module may have folders for its data. Its data folder may be below a
  // folder of modules, but not where modules are looked for.
  const isSafeIn = (each: string) =>
    (isWithin(path, own) && isWithin(own, each)) || (isData && each !== data && each !== dirname(data));
  const around = all.find((each) => isWithin(path, each) && !isSafeIn(each));
  if (around !== undefined) throw refuse(`it is a part of ${around}, where code lies, which no module may change`);
}
