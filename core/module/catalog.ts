import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Config } from "../config/index.ts";
import type { StickyBy } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { type ModuleCode, readCode } from "./code.ts";
import { isPath, listModules, locateModule, locatePath, type ModuleSource, moduleName } from "./locate.ts";

/** A module that the configuration wants on a host. */
export interface Wanted {
  readonly name: string;
  readonly host: string;
}

/** Evaluations of a module whose files are remembered, beside the latest. */
const MAX_ATTEMPTS = 4;

/** What the code of a module has said of itself. */
interface Said {
  readonly shared: boolean | undefined;
  readonly sticky: StickyBy | undefined;
  readonly depends: readonly string[];
}

/** Which modules there are and which are wanted: names to sources, sources to evaluated code. */
export class Catalog {
  #config: Config;
  readonly #loadTimeout: () => number;
  /** Evaluates a module in a worker. */
  readonly #isolated: (source: ModuleSource) => Promise<ModuleCode>;
  /** Modules that another process of the server runs. */
  readonly #isElsewhere: (name: string) => boolean;
  /** Modules that were handed to the host, by value or by path. */
  readonly #given = new Map<string, ModuleSource>();
  /** Spelling of names in the configuration: "@scope/modhost-mod-x" for x. */
  readonly #spelling = new Map<string, string>();
  readonly #codes = new Map<string, ModuleCode>();
  /** What the latest code of each module has said of itself. */
  readonly #evaluated = new Map<string, Said>();
  /** Codes that run in workers of their own, and those of them whose files say so. */
  readonly #inWorkers = new WeakMap<ModuleCode, { readonly isDeclared: boolean }>();
  /** Files of the latest evaluations of each module: of the last one that went well, and of those since. */
  readonly #files = new Map<string, Set<string>[]>();

  constructor(
    config: Config,
    given: readonly ModuleSource[],
    loadTimeout: () => number,
    isolated?: (source: ModuleSource) => Promise<ModuleCode>,
    isElsewhere: (name: string) => boolean = () => false,
  ) {
    this.#config = config;
    this.#loadTimeout = loadTimeout;
    this.#isElsewhere = isElsewhere;
    this.#isolated = isolated ?? ((source) => readCode(source, loadTimeout()));
    for (const source of given) this.#given.set(source.name, source);
  }

  /** Goes by another configuration from now on; the returned function makes everything what it was before. */
  use(config: Config): () => void {
    const former = this.#config;
    const tables = [this.#given, this.#spelling, this.#codes] as readonly Map<string, unknown>[];
    const kept = tables.map((table) => [...table]);
    this.#config = config;
    return () => {
      this.#config = former;
      for (const [at, table] of tables.entries()) {
        table.clear();
        for (const [name, value] of kept[at] ?? []) table.set(name, value);
      }
    };
  }

  /** All that is enabled, host by host, in the order of the configuration; then what was handed over. */
  wanted(): Wanted[] {
    for (const host of this.hosts()) {
      for (const entry of this.#list("modules_enabled", host))
        if (!this.#given.has(moduleName(entry))) this.learn(entry);
    }
    return this.hosts().flatMap((host) => this.#enabled(host).map((name) => ({ name, host })));
  }

  /** Evaluates all that is wanted, and what that names as dependencies. */
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

  /** Host names that modules are loaded for: "*" alone where no `hosts` are configured. */
  hosts(): readonly string[] {
    const hosts = this.#config.hosts();
    return hosts.length === 0 ? ["*"] : hosts;
  }

  /** Hosts among `hosts` on which a module is enabled: where `add_host` of a global module is called. */
  hostsOf(name: string): string[] {
    return this.#config.hosts().filter((host) => this.#enabled(host).includes(name));
  }

  #enabled(host: string): string[] {
    const found = this.#config.value("plugin_autoload") === true ? this.#pluginPaths().flatMap(listModules) : [];
    const names = [...this.#list("modules_enabled", host), ...found].map(moduleName);
    return [...new Set([...names, ...this.#given.keys()])].filter((name) => !this.isDisabled(name, host));
  }

  isDisabled(name: string, host: string): boolean {
    return this.#isElsewhere(name) || this.#list("modules_disabled", host).some((entry) => moduleName(entry) === name);
  }

  /**
   * Names of those that one process alone runs, and of all that are known to depend on them; also of those that are not loaded,
   * or no more: no other process is to load them in their place.
   */
  shared(): Set<string> {
    return this.#withDependants(({ shared }) => shared === true);
  }

  /** Names of those whose clients are told apart in this way, and of all that are known to depend on them. */
  sticky(by: StickyBy): Set<string> {
    return this.#withDependants(({ sticky }) => sticky === by);
  }

  #withDependants(is: (said: Said) => boolean): Set<string> {
    const found = new Set([...this.#evaluated].flatMap(([name, said]) => (is(said) ? [name] : [])));
    for (let size = -1; size < found.size; ) {
      size = found.size;
      for (const [name, { depends }] of this.#evaluated) if (depends.some((each) => found.has(each))) found.add(name);
    }
    return found;
  }

  /** From now on a name or path, as a person writes it, is where the module of that name is found. */
  learn(entry: string): void {
    const name = moduleName(entry);
    if (isPath(entry)) this.#given.delete(name);
    if (isPath(entry) || !this.#spelling.has(name)) this.#spelling.set(name, entry);
  }

  /** The code that instances are made from; evaluated at the first call. Its options are declared by then. */
  async code(name: string): Promise<ModuleCode> {
    const code = this.#codes.get(name) ?? (await this.fresh(name));
    this.adopt(code);
    return code;
  }

  /** Evaluates the module's file as it is on disk now. */
  async fresh(name: string): Promise<ModuleCode> {
    const files = new Set<string>();
    this.#files.set(name, [...(this.#files.get(name) ?? []).slice(-MAX_ATTEMPTS), files]);
    const source = this.locate(name);
    const isDeclared = source.file !== undefined && declaresIsolation(source.file);
    const isIsolated = isDeclared || this.#isListed(name);
    const code = await (isIsolated ? this.#isolated(source) : readCode(source, this.#loadTimeout(), files));
    if (isIsolated) this.#inWorkers.set(code, { isDeclared });
    this.#files.set(name, [files, new Set(code.files)]);
    if (code.isolated && !isIsolated) {
      const where = source.file === undefined ? "only a file can be loaded in a worker" : "its file does not show it";
      const remedy = "write `export const isolated = true` on a line of its own, or name it in modules_isolated";
      throw new ModhostError("MODULE_INVALID", {
        file: source.file ?? name,
        reason: `it is to be isolated, but ${where}: ${source.file === undefined ? "leave isolated out" : remedy}`,
        name,
      });
    }
    return code;
  }

  /** The code runs where the option modules_isolated wants it: in a worker, or in this thread. */
  isInPlace(code: ModuleCode): boolean {
    const inWorker = this.#inWorkers.get(code);
    return inWorker?.isDeclared === true || this.#isListed(code.source.name) === (inWorker !== undefined);
  }

  #isListed(name: string): boolean {
    return this.#list("modules_isolated", "*").some((entry) => moduleName(entry) === name);
  }

  /** The files that a module consists of, of those too of its latest evaluations that failed. */
  filesOf(name: string): ReadonlySet<string> {
    return new Set(this.#files.get(name)?.flatMap((files) => [...files]));
  }

  /** From now on this is the code of its module. */
  adopt(code: ModuleCode): void {
    this.#config.declare(code.options, code.source.name);
    this.#codes.set(code.source.name, code);
    const { shared, sticky, depends } = code;
    this.#evaluated.set(code.source.name, { shared, sticky, depends });
  }

  /**
   * Reads the options of code that came after the configuration was checked.
   * @throws {ModhostError} OPTION_INVALID
   */
  verify({ options }: ModuleCode): void {
    for (const [name, { per_host }] of Object.entries(options)) {
      for (const host of per_host === false ? [undefined] : [undefined, ...this.#config.hosts()]) {
        this.#config.value(name, host);
      }
    }
  }

  adopted(name: string): ModuleCode | undefined {
    return this.#codes.get(name);
  }

  /** The next load evaluates the file anew. */
  forget(name: string): void {
    this.#codes.delete(name);
  }

  /** @throws {ModhostError} MODULE_NOT_FOUND, MODULE_INVALID */
  locate(name: string): ModuleSource {
    const given = this.#given.get(name);
    if (given !== undefined) return given;
    const entry = this.#spelling.get(name) ?? name;
    const { directory } = this.#config;
    return isPath(entry) ? locatePath(resolve(directory, entry)) : locateModule(entry, this.#pluginPaths(), directory);
  }

  /** @throws {ModhostError} UNKNOWN_HOST */
  assertHost(host: string): void {
    if (host !== "*" && !this.#config.hosts().includes(host)) throw new ModhostError("UNKNOWN_HOST", { host });
  }

  #pluginPaths(): string[] {
    return this.#list("plugin_paths", "*").map((path) => resolve(this.#config.directory, path));
  }

  /** The server's list, then that of the host. */
  #list(option: string, host: string): string[] {
    const server = (this.#config.value(option) ?? []) as string[];
    return host === "*" ? server : [...new Set([...server, ...((this.#config.value(option, host) ?? []) as string[])])];
  }
}

/** `export const isolated = true`, the same of CommonJS, and a field on its own line or on that of `defineModule({`. */
const isolation =
  /^\s*(?:export const isolated\s*=|exports\.isolated\s*=|(?:(?:export default|module\.exports\s*=)\s*(?:\w+\()?\{.*[{,\s])?isolated:)\s*true\b/m;

/** Whether a file says that its module is isolated: its text is read, since its code is not to run in this thread. */
function declaresIsolation(file: string): boolean {
  try {
    return isolation.test(readFileSync(file, "utf8"));
  } catch {
    return false;
  }
}
