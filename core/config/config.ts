import { basename } from "node:path";
import { domainToASCII } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { settingsProblems } from "../permissions/index.ts";
import type { OptionDeclaration, OptionDeclarations, OptionSource } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { nearest } from "../util/nearest.ts";
import { environmentPrefix } from "../util/own_variables.ts";
import { withoutSecrets } from "../util/secret_text.ts";
import { convert, convertInto, isObject, optionTypes, type Problem, SET, secretsIn, show } from "./convert.ts";
import { readVariable, variableOf } from "./environment.ts";
import { type InstalledModules, modulesLockIn } from "./modules_lock.ts";
import {
  impossibleNames,
  isNear,
  lostProtection,
  nearestSpelling,
  protectsApps,
  sameSpelling,
  type UnknownName,
  variableFaults,
} from "./names.ts";
import { coreOptions } from "./options.ts";

export { environmentOptions } from "./environment.ts";

/** The sources of a configuration; later sources take precedence over earlier ones. */
export interface ConfigSources {
  /** The content of the config file. */
  readonly written: Record<string, unknown>;
  /** Texts of environment variables by option name. */
  readonly environment?: ReadonlyMap<string, string>;
  /** Values set by the caller. */
  readonly values?: Record<string, unknown>;
  readonly file?: string | undefined;
  /** The content comes from the host's default: nobody has set it. */
  readonly isDefault?: boolean;
  /** The config file is empty, or contains only comments. */
  readonly isEmpty?: boolean;
  /** The folder from which relative paths are resolved. */
  readonly directory: string;
  /** The modules in `modules.lock`. */
  readonly installed?: InstalledModules;
}

/** A value as written, and its path for messages. */
interface Found {
  readonly path: string;
  readonly value: unknown;
}

interface HostEntry {
  /** The name as spelt in the file. */
  readonly written: string;
  readonly values: Record<string, unknown>;
}

/** Shorter texts do not count as secrets, because they are part of many words. */
const MIN_SECRET_LENGTH = 4;

/** Returns a text as it occurs in plain text, in JSON and in URLs. */
const spellings = (text: string): string[] => [
  text,
  JSON.stringify(text).slice(1, -1),
  encodeURIComponent(text.toWellFormed()),
];

/**
 * A configuration and the declarations of its options. Values are read through the declarations;
 * undeclared names return the value as written. Options written as null are not set.
 */
export class Config {
  readonly file: string | undefined;
  /** The folder from which relative paths are resolved. */
  readonly directory: string;
  /** The config file is empty, or contains only comments: perhaps somebody is writing it. */
  readonly isEmpty: boolean;
  /**
   * The modules in `modules.lock`: they are enabled, and the option `modules` begins with theirs.
   */
  readonly installed: InstalledModules;
  /** The path of `modules.lock`; undefined for a configuration that does not read one. */
  readonly lockFile: string | undefined;
  #server: Record<string, unknown>;
  #environment: ReadonlyMap<string, string>;
  #hosts = new Map<string, HostEntry>();
  #declarations = new Map<string, OptionDeclaration & { owner: string }>();
  #readNames = new Set<string>();
  /**
   * Options that protect apps of other modules and whose own modules are not loaded, with the names
   * of the modules.
   */
  #missing: ReadonlyMap<string, string> = new Map();
  /** Options that stay at their previous values, by name: as written, with the path. */
  readonly #pinned = new Map<string, Found>();
  /** Names that the caller has set. */
  readonly #given: ReadonlySet<string>;
  readonly #isDefault: boolean;
  /** Secrets of previous configurations, and of refused ones. */
  #otherSecrets: ReadonlySet<string> = new Set();
  /** Compiled when it is needed, again after each declaration. */
  #secrets: RegExp | undefined;

  constructor(sources: ConfigSources) {
    const { written, environment = new Map(), values = {} } = sources;
    this.file = sources.file;
    this.directory = sources.directory;
    this.isEmpty = sources.isEmpty === true;
    this.installed = sources.installed ?? new Map();
    this.lockFile = sources.installed && modulesLockIn(sources.directory);
    this.#server = { ...written, ...values };
    this.#given = new Set(Object.keys(values));
    this.#isDefault = sources.isDefault === true;
    this.#environment = new Map([...environment].filter(([name]) => !Object.hasOwn(values, name)));
    this.declare(coreOptions, "core");
    const { value: hosts } = this.#find("hosts");
    for (const [name, entry] of isObject(hosts) ? Object.entries(hosts) : []) {
      const host = hostName(name);
      if (host !== undefined) this.#hosts.set(host, { written: name, values: isObject(entry) ? entry : {} });
    }
  }

  /**
   * Adds the options of `owner` and replaces its previous declarations.
   * @throws {ModhostError} MODULE_INVALID for an option that cannot be declared so, or that another
   * owner declares differently
   */
  declare(declarations: OptionDeclarations, owner: string): void {
    for (const [name, declaration] of Object.entries(declarations)) {
      const known = this.#declarations.get(name);
      const reason = faultOf(name, declaration) ?? clash(known, declaration, owner);
      if (reason !== undefined) {
        throw new ModhostError("MODULE_INVALID", { file: owner, reason: `its option ${name} ${reason}` });
      }
      if (known === undefined || known.owner === owner) this.#declarations.set(name, { ...declaration, owner });
    }
    this.#secrets = undefined;
  }

  /**
   * Returns the sources of this configuration, reduced to the options of these names, to copy it to
   * another thread.
   */
  sources(isWanted: (name: string) => boolean): ConfigSources {
    const some = (values: object) => Object.fromEntries(Object.entries(values).filter(([name]) => isWanted(name)));
    const hosts = [...this.#hosts.values()].map(({ written, values }) => [written, some(values)]);
    return {
      written: { ...some(this.#server), ...(hosts.length === 0 ? {} : { hosts: Object.fromEntries(hosts) }) },
      environment: new Map([...this.#environment].filter(([name]) => isWanted(name))),
      file: this.file,
      directory: this.directory,
    };
  }

  declarations(): ReadonlyMap<string, OptionDeclaration & { owner: string }> {
    return this.#declarations;
  }

  /**
   * Checks every declared option, of the server and of each host.
   * @throws {ModhostError} CONFIG_INVALID listing all problems: path, value, what is allowed
   */
  check(): void {
    const problems: Problem[] = [...this.#hostProblems(), ...impossibleNames(this.#server)];
    for (const [name, text] of this.#environment) problems.push(...variableFaults(variableOf(name), text));
    for (const name of this.#declarations.keys()) problems.push(...this.#problemsOf(name));
    for (const { written, values } of this.#hosts.values()) {
      for (const [name, value] of Object.entries(values)) {
        const declaration = this.#declarations.get(name);
        const path = `hosts.${written}.${name}`;
        if (declaration === undefined || value === null || value === undefined) continue;
        if (declaration.per_host === false) {
          problems.push({ path, value, allowed: `${name} is an option of the whole server: move it out of hosts` });
        } else convertInto(problems, declaration, path, value, this.directory);
      }
    }
    this.#refuse(problems);
  }

  /**
   * Sets the options of modules that are not loaded which count as wanted, by name: they protect
   * apps of other modules.
   */
  missGuards(missing: ReadonlyMap<string, string>): void {
    this.#missing = missing;
  }

  /**
   * Checks for misspelt names of options with `protects`. Call it when all modules are loaded,
   * because they may read options that are not declared, and after `missGuards`.
   * @throws {ModhostError} CONFIG_INVALID for an unknown name that nearly equals an option with
   * `protects`, for an option that protects apps and whose module is not loaded, and for a name
   * inside such an option that differs from the name of an app only in case or dashes
   *
   * `isGone` says whether a module has been unloaded: its declarations stay, but its options then
   * count as unknown.
   */
  checkNames(apps: ReadonlySet<string> = new Set(), isGone: (owner: string) => boolean = () => false): void {
    const isProtecting = (name: string) => {
      const declared = this.#declarations.get(name);
      return declared === undefined || isGone(declared.owner) ? this.#missing.has(name) : declared.protects === true;
    };
    const lost = this.#unknown(isGone).filter(({ spelt, like = "" }) => isProtecting(like) && isNear(spelt, like));
    const misspelt = this.#unknownApps(apps).filter(
      ({ name, nearest }) => nearest !== undefined && sameSpelling(name) === sameSpelling(nearest),
    );
    this.#refuse([
      ...lost.map(({ path, meant, like = "" }) => {
        return { path, value: SET, allowed: lostProtection(meant, this.#missing.get(like)) };
      }),
      ...misspelt.map(({ path, nearest }) => ({ path, value: SET, allowed: `the app is named ${nearest}` })),
    ]);
  }

  /**
   * Checks the option `modules`, before any module is evaluated: with a wrong entry, or a misspelt
   * name, the module that is meant would run without these settings. `unknown` returns the names of
   * no module, each with a module of nearly the same name.
   * @throws {ModhostError} CONFIG_INVALID
   */
  checkModules(unknown: () => readonly UnknownName[]): void {
    this.#refuse(this.#problemsOf("modules"));
    const misspelt = unknown().flatMap(({ path, nearest: meant }) => {
      if (meant === undefined) return [];
      const allowed = `no module has this name: write ${meant}, which would otherwise run without these settings`;
      return [{ path, value: SET, allowed }];
    });
    this.#refuse(misspelt);
  }

  /** Returns what is wrong with the value of a declared option of the server. */
  #problemsOf(name: string): Problem[] {
    const declaration = this.#declarations.get(name);
    const { path, value } = this.#find(name);
    if (declaration === undefined || value === undefined) return [];
    const problems: Problem[] = [];
    const converted = convertInto(problems, declaration, path, value, this.directory);
    return name === "modules" ? [...problems, ...settingsProblems(converted)] : problems;
  }

  #refuse(problems: readonly Problem[]): void {
    if (problems.length === 0) return;
    const where = this.file === undefined ? "" : `${basename(this.file)}: `;
    const lines = problems.map(({ path, value, allowed }) => {
      return `  ${path.startsWith(environmentPrefix) ? "" : where}${path} is ${show(value)}, but ${allowed}`;
    });
    throw new ModhostError("CONFIG_INVALID", { problems: lines.join("\n"), list: problems, file: this.file });
  }

  /**
   * Returns an option as declared: the host's own value, else the server's, else the default. An
   * undeclared name counts as known afterwards.
   * @throws {ModhostError} OPTION_INVALID
   */
  value(name: string, host?: string): unknown {
    if (!this.#declarations.has(name)) this.#readNames.add(name);
    return this.shown(name, host);
  }

  /**
   * Works as `value`, but an undeclared name stays unknown. @throws {ModhostError} OPTION_INVALID
   */
  shown(name: string, host?: string): unknown {
    const declaration = this.#declarations.get(name);
    const found = this.#find(name, host);
    if (declaration === undefined) return found.value;
    const value = found.value ?? declaration.default;
    return value === undefined ? undefined : convert(declaration, found.path, value, this.directory);
  }

  /** Takes over the option declarations and the secrets of the previous configuration. */
  follow(previous: Config): void {
    for (const [name, declaration] of previous.#declarations) this.#declarations.set(name, declaration);
    for (const name of previous.#readNames) this.#readNames.add(name);
    this.hideSecretsOf(previous);
  }

  /** Hides the secrets of another configuration in texts, too. */
  hideSecretsOf(other: Config): void {
    this.#otherSecrets = new Set([...this.#otherSecrets, ...other.#otherSecrets, ...other.#secretTexts()]);
    this.#secrets = undefined;
  }

  /**
   * Keeps the value that the option has in the previous configuration, for the server and each
   * host.
   */
  pin(name: string, previous: Config): void {
    this.#pinned.set(name, { path: name, value: previous.value(name) });
    for (const host of this.#hosts.keys()) {
      const value = previous.written(name, host);
      if (value !== undefined) this.#pinned.set(`${name}@${host}`, { path: `hosts.${host}.${name}`, value });
    }
  }

  /** Returns the names of all options that are set or declared. */
  names(): Set<string> {
    const hosts = [...this.#hosts.values()].flatMap(({ values }) => Object.keys(values));
    return new Set([...this.#declarations.keys(), ...Object.keys(this.#server), ...this.#environment.keys(), ...hosts]);
  }

  /**
   * Returns an option as written for a host itself, else undefined; without a host, as written for
   * the server.
   */
  written(name: string, host?: string): unknown {
    if (host === undefined) return this.#find(name).value;
    return ownValue(this.#hosts.get(host)?.values ?? {}, name);
  }

  /**
   * Returns where the value of an option comes from; for a host, "unset" if it has no value of its
   * own.
   */
  source(name: string, host?: string): OptionSource {
    if (host !== undefined) return this.written(name, host) === undefined ? "unset" : this.source("hosts");
    if (this.#environment.has(name)) return "environment";
    if (ownValue(this.#server, name) === undefined)
      return this.#declarations.get(name)?.default === undefined ? "unset" : "default";
    if (this.#given.has(name)) return "caller";
    return this.file !== undefined ? "file" : this.#isDefault ? "default" : "caller";
  }

  /** Returns an option as written, without default. The name counts as known afterwards. */
  raw(name: string, host?: string): unknown {
    this.#readNames.add(name);
    return this.#find(name, host).value;
  }

  /** Returns a text without the values of secret options, and without secrets of tokens. */
  mask(text: string): string {
    this.#secrets ??= this.#findSecrets();
    return withoutSecrets(text.replace(this.#secrets, "(secret)"));
  }

  #findSecrets(): RegExp {
    const texts = [...new Set([...this.#secretTexts(), ...this.#otherSecrets].flatMap(spellings))];
    // The longest comes first, because one may start with another. Without secrets the pattern
    // never matches.
    const patterns = texts.sort((one, other) => other.length - one.length).map((text) => RegExp.escape(text));
    return new RegExp(patterns.join("|") || "(?!)", "g");
  }

  #secretTexts(): string[] {
    const hosts = [undefined, ...this.#hosts.keys()];
    const found = [...this.#declarations].flatMap(([name, declaration]) =>
      hosts.flatMap((host) => secretsIn(declaration, this.#find(name, host).value)),
    );
    return found.filter((text) => text.length >= MIN_SECRET_LENGTH);
  }

  /**
   * Returns the names that are set but neither declared nor read, each with the nearest known name
   * in the same spelling. `apps`: the names of the existing apps; without it names of apps are not
   * checked.
   */
  unknownNames(apps?: ReadonlySet<string>): UnknownName[] {
    const options = this.#unknown().map(({ path, meant }) => ({ path, nearest: meant }));
    const stray = apps === undefined ? [] : this.#unknownApps(apps);
    return [...options, ...stray.map(({ path, nearest }) => ({ path, nearest }))];
  }

  /** Returns the names that are set and that no module declares or reads, in one spelling. */
  unreadNames(isGone?: (owner: string) => boolean): Set<string> {
    return new Set(this.#unknown(isGone).map(({ spelt }) => spelt));
  }

  /**
   * Returns the apps that the options of a module protect, of the server and of its hosts; "*" is
   * for all that have no entry.
   */
  protectedApps(owner: string): string[] {
    const options = [...this.#declarations].filter(([, each]) => each.owner === owner && protectsApps(each));
    const values = options.flatMap(([name]) =>
      [undefined, ...this.#hosts.keys()].map((host) => this.value(name, host)),
    );
    return [...new Set(values.flatMap((value) => (isObject(value) ? Object.keys(value) : [])))].sort();
  }

  /** Returns the names in the options that protect apps which are not among `apps`. */
  #unknownApps(apps: ReadonlySet<string>): (UnknownName & { readonly name: string })[] {
    const values = [...this.#declarations]
      .filter(([, declaration]) => protectsApps(declaration))
      .flatMap(([option]) => [undefined, ...this.#hosts.keys()].map((host) => this.#find(option, host)));
    const named = new Map(values.map(({ path, value }) => [path, isObject(value) ? Object.keys(value) : []]));
    return [...named].flatMap(([path, names]) =>
      names
        .filter((name) => name !== "*" && !apps.has(name))
        .map((name) => ({ name, path: `${path}.${name}`, nearest: nearestSpelling(name, apps) })),
    );
  }

  #unknown(isGone: (owner: string) => boolean = () => false) {
    const declared = [...this.#declarations].filter(([, { owner }]) => !isGone(owner)).map(([name]) => name);
    const known = new Set([...declared, ...this.#readNames]);
    const same = (name: string) => name;
    const unknown = (names: Iterable<string>, path: (name: string) => string, written = same) =>
      [...names]
        .filter((name) => !known.has(name) && !name.startsWith("$"))
        .map((name) => {
          const spelt = sameSpelling(name);
          const like = nearest(spelt, [...known, ...this.#missing.keys()]);
          return { path: path(name), spelt, like, meant: like === name ? undefined : like && written(like) };
        });
    return [
      ...unknown(Object.keys(this.#server), same),
      ...unknown(this.#environment.keys(), variableOf, variableOf),
      ...[...this.#hosts.values()].flatMap(({ written, values }) =>
        unknown(Object.keys(values), (name) => `hosts.${written}.${name}`),
      ),
    ];
  }

  /**
   * Returns the names of the virtual hosts in their ASCII form, in the order of the file; empty if
   * any host is served.
   */
  hosts(): string[] {
    return [...this.#hosts.keys()];
  }

  #find(name: string, host?: string): Found {
    const pinned =
      this.#pinned.size === 0 ? undefined : (this.#pinned.get(`${name}@${host}`) ?? this.#pinned.get(name));
    if (pinned !== undefined) return pinned;
    const entry = host === undefined ? undefined : this.#hosts.get(host);
    const own = entry === undefined ? undefined : ownValue(entry.values, name);
    if (entry !== undefined && own !== undefined) return { path: `hosts.${entry.written}.${name}`, value: own };
    const text = this.#environment.get(name);
    const found =
      text === undefined
        ? { path: name, value: ownValue(this.#server, name) }
        : { path: variableOf(name), value: readVariable(text, this.#declarations.get(name)) };
    return name === "modules" ? { ...found, value: this.#withInstalled(found.value) } : found;
  }

  /** Returns the value of the option `modules` with what the operator agreed to at installation. */
  #withInstalled(value: unknown): unknown {
    if (this.installed.size === 0 || !(value === undefined || isObject(value))) return value;
    const entries = new Map<string, unknown>(Object.entries(value ?? {}));
    for (const [name, { run, grant }] of this.installed) {
      const own = entries.get(name) ?? {};
      if (isObject(own)) entries.set(name, { run, grant, ...own });
    }
    return Object.fromEntries(entries);
  }

  *#hostProblems(): Generator<Problem> {
    const { path, value: hosts } = this.#find("hosts");
    const seen = new Set<string>();
    for (const [name, entry] of isObject(hosts) ? Object.entries(hosts) : []) {
      const at = `${path}.${name}`;
      const host = hostName(name);
      if (host === undefined) yield { path: at, value: entry, allowed: "its name must be a host name without port" };
      else if (seen.has(host)) yield { path: at, value: entry, allowed: `the host ${host} is listed twice` };
      else if (entry !== null && !isObject(entry)) {
        yield { path: at, value: entry, allowed: "it must be an object with the options of this host" };
      }
      if (host !== undefined) seen.add(host);
    }
  }
}

/** Returns a configuration that was not read from a file. */
export function configFrom(values: Record<string, unknown>, directory: string = process.cwd()): Config {
  return new Config({ written: values, directory });
}

function ownValue(values: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(values, name) ? (values[name] ?? undefined) : undefined;
}

/**
 * Returns the lower-case ASCII form without a final dot, which requests are compared with;
 * undefined for a name that a Host header cannot carry.
 */
function hostName(name: string): string | undefined {
  if (/[*:/\s?#@\\]/.test(name.replace(/^\[[\da-f:.]+\]$/i, ""))) return undefined;
  const ascii = domainToASCII(name).replace(/\.$/, "");
  return ascii === "" || ascii.endsWith(".") ? undefined : ascii;
}

function faultOf(name: string, declaration: OptionDeclaration): string | undefined {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) return "must be named in lower case, digits and underscores";
  if (!isObject(declaration) || !optionTypes.includes(declaration.type)) {
    return `needs a type: one of ${optionTypes.join(", ")}`;
  }
  if (typeof declaration.describe !== "string") return "needs a sentence: describe";
  if (declaration.default === undefined) return undefined;
  if (declaration.required === true) return "is required, and yet has a default";
  const problems: Problem[] = [];
  convertInto(problems, declaration, name, declaration.default, "/");
  return problems[0] && `has the default ${show(declaration.default)}, but ${problems[0].allowed}`;
}

function clash(
  known: (OptionDeclaration & { owner: string }) | undefined,
  declaration: OptionDeclaration,
  owner: string,
): string | undefined {
  if (known === undefined || known.owner === owner) return undefined;
  const { owner: other, ...rest } = known;
  return isDeepStrictEqual(rest, { ...declaration }) ? undefined : `is declared otherwise by ${other}`;
}
