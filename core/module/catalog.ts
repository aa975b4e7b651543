import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Config, isNear, protectsApps, type UnknownName } from "../config/index.ts";
import type { ModuleRun, StickyBy } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { moduleName } from "../util/module_name.ts";
import { bundledModules } from "../util/package.ts";
import { type ModuleCode, readCode } from "./code.ts";
import { isPath, listModules, locateInstalled, locateModule, locatePath, type ModuleSource } from "./locate.ts";
import { type DeclaredRights, type ModuleRights, moduleSettings, rightsOf } from "./rights.ts";

/** A module that the configuration enables on a host. */
export interface Wanted {
  readonly name: string;
  readonly host: string;
}

/**
 * Number of earlier evaluations of a module whose files are remembered in addition to the latest.
 */
const MAX_ATTEMPTS = 4;

/** The declarations in the code of a module that matter while it is not loaded. */
interface CodeTraits {
  readonly shared: boolean | undefined;
  readonly sticky: StickyBy | undefined;
  readonly depends: readonly string[];
}

/**
 * Knows which modules exist and which are enabled: maps names to sources, and sources to evaluated
 * code.
 */
export class Catalog {
  #config: Config;
  readonly #loadTimeout: () => number;
  /** Evaluates a module in a worker, or in a process of its own. */
  readonly #isolated: (source: ModuleSource, rights: ModuleRights) => Promise<ModuleCode>;
  /** Modules that another process of the server runs. */
  readonly #isElsewhere: (name: string) => boolean;
  /** Modules that were passed to the host, by value or by path. */
  readonly #passed = new Map<string, ModuleSource>();
  /** The spelling of names in the configuration: "@scope/modhost-mod-x" for x. */
  readonly #spelling = new Map<string, string>();
  readonly #codes = new Map<string, ModuleCode>();
  /** The declarations in the latest code of each module. */
  readonly #evaluated = new Map<string, CodeTraits>();
  /** Codes whose files declare that they run isolated. */
  readonly #declared = new WeakSet<ModuleCode>();
  /**
   * The files of each module: those of its last successful evaluation, and of all attempts since
   * then.
   */
  readonly #files = new Map<string, Set<string>[]>();

  constructor(
    config: Config,
    given: readonly ModuleSource[],
    loadTimeout: () => number,
    isolated?: (source: ModuleSource, rights: ModuleRights) => Promise<ModuleCode>,
    isElsewhere: (name: string) => boolean = () => false,
  ) {
    this.#config = config;
    this.#loadTimeout = loadTimeout;
    this.#isElsewhere = isElsewhere;
    this.#isolated = isolated ?? ((source) => readCode(source, loadTimeout()));
    for (const source of given) this.#passed.set(source.name, source);
  }

  /** Switches to another configuration; the returned function restores the previous state. */
  use(config: Config): () => void {
    const previous = this.#config;
    const tables = [this.#passed, this.#spelling, this.#codes] as readonly Map<string, unknown>[];
    const saved = tables.map((table) => [...table]);
    this.#config = config;
    return () => {
      this.#config = previous;
      for (const [at, table] of tables.entries()) {
        table.clear();
        for (const [name, value] of saved[at] ?? []) table.set(name, value);
      }
    };
  }

  /**
   * Returns all enabled modules, host by host, in the order of the configuration, followed by those
   * that were passed to the host.
   */
  wanted(): Wanted[] {
    for (const host of this.hosts()) {
      for (const entry of this.#list("modules_enabled", host))
        if (!this.#passed.has(moduleName(entry))) this.learn(entry);
    }
    return this.hosts().flatMap((host) => this.#enabled(host).map((name) => ({ name, host })));
  }

  /**
   * Returns the names of all modules that the configuration names or that are in a folder of
   * `plugin_paths`, unless they are disabled.
   */
  named(): string[] {
    const found = this.#pluginPaths()
      .flatMap(listModules)
      .filter((name) => !this.isDisabled(name, "*"));
    return [...new Set([...this.wanted().map(({ name }) => name), ...found])];
  }

  /** Evaluates all enabled modules and their declared dependencies. */
  async evaluate(failed: (name: string, error: unknown) => void): Promise<void> {
    const names = [...new Set(this.wanted().map(({ name }) => name))];
    for (const name of names) {
      try {
        const { depends } = await this.code(name);
        names.push(...depends.filter((other) => !names.includes(other) && !this.isDisabled(other, "*")));
      } catch (error) {
        failed(name, error);
      }
    }
  }

  /** Returns the host names that modules are loaded for: only "*" if no `hosts` are configured. */
  hosts(): readonly string[] {
    const hosts = this.#config.hosts();
    return hosts.length === 0 ? ["*"] : hosts;
  }

  /**
   * Returns the hosts on which a module is enabled: `add_host` of a global module is called for
   * these.
   */
  hostsOf(name: string): string[] {
    return this.#config.hosts().filter((host) => this.#enabled(host).includes(name));
  }

  #enabled(host: string): string[] {
    const found = this.#config.value("plugin_autoload") === true ? this.#pluginPaths().flatMap(listModules) : [];
    const names = [...this.#list("modules_enabled", host), ...found].map(moduleName);
    const enabled = new Set([...names, ...this.#config.installed.keys(), ...this.#passed.keys()]);
    return [...enabled].filter((name) => !this.isDisabled(name, host));
  }

  isDisabled(name: string, host: string): boolean {
    return this.#isElsewhere(name) || this.#list("modules_disabled", host).some((entry) => moduleName(entry) === name);
  }

  /**
   * Returns the names of modules that only one process runs, and of all that are known to depend on
   * them. Modules that are not loaded now are included, so that no other process loads them
   * instead.
   */
  shared(): Set<string> {
    return this.#withDependants(({ shared }) => shared === true);
  }

  /**
   * Returns the names of modules that identify their clients in this way, and of all that are known
   * to depend on them.
   */
  sticky(by: StickyBy): Set<string> {
    return this.#withDependants(({ sticky }) => sticky === by);
  }

  #withDependants(is: (traits: CodeTraits) => boolean): Set<string> {
    const found = new Set([...this.#evaluated].flatMap(([name, traits]) => (is(traits) ? [name] : [])));
    for (let size = -1; size < found.size; ) {
      size = found.size;
      for (const [name, { depends }] of this.#evaluated) if (depends.some((each) => found.has(each))) found.add(name);
    }
    return found;
  }

  /**
   * Records a name or path, as a person writes it, as the location of the module with that name.
   */
  learn(entry: string): void {
    const name = moduleName(entry);
    if (isPath(entry)) this.#passed.delete(name);
    if (isPath(entry) || !this.#spelling.has(name)) this.#spelling.set(name, entry);
  }

  /**
   * Returns the code that instances are created from; the first call evaluates it. Its options are
   * declared when this resolves.
   */
  async code(name: string): Promise<ModuleCode> {
    const code = this.#codes.get(name) ?? (await this.fresh(name));
    this.adopt(code);
    return code;
  }

  /** Evaluates the module's current file. */
  async fresh(name: string): Promise<ModuleCode> {
    const files = new Set<string>();
    this.#files.set(name, [...(this.#files.get(name) ?? []).slice(-MAX_ATTEMPTS), files]);
    const source = this.locate(name);
    const isDeclared = source.file !== undefined && declaresIsolation(source.file);
    const rights = rightsOf(this.#config, source, this.#runOf(name, isDeclared));
    const isInHost = rights.run === "trusted";
    const evaluated = await (isInHost ? readCode(source, this.#loadTimeout(), files) : this.#isolated(source, rights));
    const code = { ...evaluated, rights };
    if (isDeclared) this.#declared.add(code);
    this.#files.set(name, [files, new Set(code.files)]);
    if (code.isolated && isInHost && rights.settings.run === undefined) {
      const where = source.file === undefined ? "only a file can be loaded in a worker" : "its file does not show it";
      const remedy = "write `export const isolated = true` on a line of its own, or name it in modules_isolated";
      throw new ModhostError("MODULE_INVALID", {
        file: source.file ?? name,
        reason: `it must run isolated, but ${where}: ${source.file === undefined ? "leave isolated out" : remedy}`,
        name,
      });
    }
    return code;
  }

  /**
   * Returns the setting of the configuration because of which the code has to be evaluated again:
   * it runs elsewhere, or with other rights. Undefined if there is none.
   */
  changedSetting(code: ModuleCode): string | undefined {
    const { name } = code.source;
    const { run = "trusted", settings: previous } = code.rights ?? {};
    const next = moduleSettings(this.#config, name);
    if (this.#runOf(name, this.#declared.has(code)) !== run) {
      return previous?.run === next.run ? "modules_isolated" : `modules.${name}.run`;
    }
    if (run === "trusted") return undefined;
    const fields = ["grant", "limits", "audit", "namespaces", "spare"] as const;
    const changed = fields.find((field) => !isDeepStrictEqual(previous?.[field], next[field]));
    return changed && `modules.${name}.${changed}`;
  }

  /**
   * Checks the rights that the configuration gives to a module.
   * @throws {ModhostError} OPTION_INVALID
   */
  assertRights(code: ModuleCode): void {
    const { source } = code;
    rightsOf(this.#config, source, this.#runOf(source.name, this.#declared.has(code)));
  }

  /** Returns where a module runs, or would run if it is not loaded. */
  runOf(name: string): ModuleRun {
    let file: string | undefined;
    try {
      ({ file } = this.locate(name));
    } catch {} // A module that cannot be found does not run at all.
    return this.#runOf(name, file !== undefined && declaresIsolation(file));
  }

  /**
   * Returns the rights of a module that is not loaded; undefined if it has none outside of the
   * host.
   */
  rightsOf(name: string): DeclaredRights | undefined {
    try {
      const run = this.runOf(name);
      const source = this.locate(name);
      return run === "trusted" ? undefined : { source, rights: rightsOf(this.#config, source, run) };
    } catch {
      return; // It cannot be found, or its grant is not valid: its failure says so.
    }
  }

  /** Returns where a module runs; `isDeclared`: its file declares that it runs isolated. */
  #runOf(name: string, isDeclared: boolean): ModuleRun {
    return moduleSettings(this.#config, name).run ?? (isDeclared || this.#isListed(name) ? "isolated" : "trusted");
  }

  #isListed(name: string): boolean {
    return this.#list("modules_isolated", "*").some((entry) => moduleName(entry) === name);
  }

  /**
   * Returns the files that a module consists of, including those of its latest failed evaluations.
   */
  filesOf(name: string): ReadonlySet<string> {
    return new Set(this.#files.get(name)?.flatMap((files) => [...files]));
  }

  /** Makes this the current code of its module. */
  adopt(code: ModuleCode): void {
    this.#config.declare(code.options, code.source.name);
    this.#codes.set(code.source.name, code);
    const { shared, sticky, depends } = code;
    this.#evaluated.set(code.source.name, { shared, sticky, depends });
  }

  /**
   * Checks the options of code that was evaluated after the configuration was checked.
   * @throws {ModhostError} OPTION_INVALID
   */
  verify({ options }: ModuleCode): void {
    for (const [name, { per_host }] of Object.entries(options)) {
      for (const host of per_host === false ? [undefined] : [undefined, ...this.#config.hosts()]) {
        this.#config.value(name, host);
      }
    }
  }

  /**
   * Returns options that protect apps of other modules and whose own modules are not loaded, by
   * name, with the name of the module. Only modules whose names nearly equal one of `unread` are
   * evaluated, because an option that protects apps has the name of its module. Disabled modules
   * are left out, because whoever disables one does not want its protection.
   */
  async missingGuards(unread: ReadonlySet<string>): Promise<Map<string, string>> {
    const missing = new Map<string, string>();
    if (unread.size === 0) return missing;
    for (const module of [...this.#pluginPaths(), bundledModules].flatMap(listModules).map(moduleName)) {
      if (this.isDisabled(module, "*") || ![...unread].some((name) => isNear(name, module))) continue;
      const code = this.adopted(module) ?? (await this.fresh(module).catch(() => undefined));
      for (const [name, declaration] of Object.entries(code?.options ?? {})) {
        if (protectsApps(declaration)) missing.set(name, module);
      }
    }
    return missing;
  }

  /**
   * Returns the entries of the option `modules` that name no module, each with the module of nearly
   * the same name.
   */
  unknownModules(): UnknownName[] {
    const known = new Set([...this.named(), ...this.#codes.keys()]);
    return Object.keys((this.#config.value("modules") ?? {}) as object)
      .filter((name) => !known.has(name) && !this.#exists(name))
      .map((name) => ({ path: `modules.${name}`, nearest: [...known].find((each) => isNear(name, each)) }));
  }

  #exists(name: string): boolean {
    try {
      this.locate(name);
      return true;
    } catch {
      return false;
    }
  }

  adopted(name: string): ModuleCode | undefined {
    return this.#codes.get(name);
  }

  /** Makes the next load evaluate the file again. */
  forget(name: string): void {
    this.#codes.delete(name);
  }

  /** @throws {ModhostError} MODULE_NOT_FOUND, MODULE_INVALID */
  locate(name: string): ModuleSource {
    const given = this.#passed.get(name);
    if (given !== undefined) return given;
    const { directory, installed } = this.#config;
    const module = installed.get(name);
    if (module !== undefined) return locateInstalled(name, module, String(this.#config.value("data_path")));
    const entry = this.#spelling.get(name) ?? name;
    return isPath(entry) ? locatePath(resolve(directory, entry)) : locateModule(entry, this.#pluginPaths(), directory);
  }

  /** @throws {ModhostError} UNKNOWN_HOST */
  assertHost(host: string): void {
    if (host !== "*" && !this.#config.hosts().includes(host)) throw new ModhostError("UNKNOWN_HOST", { host });
  }

  #pluginPaths(): string[] {
    return this.#list("plugin_paths", "*").map((path) => resolve(this.#config.directory, path));
  }

  /** Returns the server's list, followed by that of the host. */
  #list(option: string, host: string): string[] {
    const server = (this.#config.value(option) ?? []) as string[];
    return host === "*" ? server : [...new Set([...server, ...((this.#config.value(option, host) ?? []) as string[])])];
  }
}

/**
 * Matches `export const isolated = true`, the CommonJS equivalent, and a field on its own line or
 * on the line of `defineModule({`.
 */
const isolation =
  /^\s*(?:export const isolated\s*=|exports\.isolated\s*=|(?:(?:export default|module\.exports\s*=)\s*(?:\w+\()?\{.*[{,\s])?isolated:)\s*true\b/m;

/**
 * Returns true if a file declares its module as isolated. This reads the text of the file, since
 * its code must not run in this thread.
 */
function declaresIsolation(file: string): boolean {
  try {
    return isolation.test(readFileSync(file, "utf8"));
  } catch {
    return false;
  }
}
