import { basename } from "node:path";
import { domainToASCII } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { OptionDeclaration, OptionDeclarations, OptionSource } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { nearest } from "../util/nearest.ts";
import { convert, convertInto, isObject, optionTypes, type Problem, secretsIn, show } from "./convert.ts";
import { coreOptions } from "./options.ts";

/** Where a configuration comes from; later sources win over earlier ones. */
export interface ConfigSources {
  /** What the config file holds. */
  readonly written: Record<string, unknown>;
  /** Option name to the text of its environment variable. */
  readonly environment?: ReadonlyMap<string, string>;
  /** Set by the caller. */
  readonly values?: Record<string, unknown>;
  readonly file?: string | undefined;
  /** What is written came with the host: nobody has set it. */
  readonly isDefault?: boolean;
  /** Relative paths count from here. */
  readonly directory: string;
}

export interface UnknownName {
  readonly path: string;
  readonly nearest: string | undefined;
}

export function unknownMessage({ path, nearest }: UnknownName): string {
  return `Nothing reads the option ${path}${nearest === undefined ? "" : `: is ${nearest} meant?`}`;
}

/** A value as written, and where: the path is for messages. */
interface Found {
  readonly path: string;
  readonly value: unknown;
}

interface HostEntry {
  /** As spelt in the file. */
  readonly written: string;
  readonly values: Record<string, unknown>;
}

/** Shorter ones are no secrets, and are part of many words. */
const MIN_SECRET_LENGTH = 4;

/** A text as it stands in plain text, in JSON and in URLs. */
const spellings = (text: string): string[] => [
  text,
  JSON.stringify(text).slice(1, -1),
  encodeURIComponent(text.toWellFormed()),
];

export const environmentPrefix = "MODHOST_";

/**
 * One configuration and the declarations of its options. Values are read through the declarations; a name that nobody
 * declares is given as written. Options written as null are not set.
 */
export class Config {
  readonly file: string | undefined;
  /** Relative paths in the configuration count from here. */
  readonly directory: string;
  #server: Record<string, unknown>;
  #environment: ReadonlyMap<string, string>;
  #hosts = new Map<string, HostEntry>();
  #declarations = new Map<string, OptionDeclaration & { owner: string }>();
  #asked = new Set<string>();
  /** Options whose values stay what they were, by name: as written, and where. */
  readonly #held = new Map<string, Found>();
  /** Names that the caller has set. */
  readonly #given: ReadonlySet<string>;
  readonly #isDefault: boolean;
  /** Secrets of the configurations before this one, and of those that were refused. */
  #otherSecrets: ReadonlySet<string> = new Set();
  /** Found when they are asked for, anew after each declaration. */
  #secrets: RegExp | undefined;

  constructor(sources: ConfigSources) {
    const { written, environment = new Map(), values = {} } = sources;
    this.file = sources.file;
    this.directory = sources.directory;
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
   * Adds the options of `owner`; its former declarations are replaced.
   * @throws {ModhostError} MODULE_INVALID for an option that cannot be declared so, or that another owner declares otherwise
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

  /** What it was made from, for a copy of it in another thread: the options of these names alone. */
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
   * Reads every declared option, of the server and of each host.
   * @throws {ModhostError} CONFIG_INVALID listing all that is wrong: path, value, what is allowed
   */
  check(): void {
    const problems: Problem[] = [...this.#hostProblems()];
    for (const [name, declaration] of this.#declarations) {
      const { path, value } = this.#find(name);
      if (value !== undefined) convertInto(problems, declaration, path, value, this.directory);
    }
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
    if (problems.length === 0) return;
    const where = this.file === undefined ? "" : `${basename(this.file)}: `;
    const lines = problems.map(({ path, value, allowed }) => {
      return `  ${path.startsWith(environmentPrefix) ? "" : where}${path} is ${show(value)}, but ${allowed}`;
    });
    throw new ModhostError("CONFIG_INVALID", { problems: lines.join("\n"), list: problems, file: this.file });
  }

  /**
   * An option converted as declared: the host's own value, else the server's, else the default. A name that
   * nobody has declared counts as known from now on.
   * @throws {ModhostError} OPTION_INVALID
   */
  value(name: string, host?: string): unknown {
    if (!this.#declarations.has(name)) this.#asked.add(name);
    return this.shown(name, host);
  }

  /**
   * The same for who looks at all options and needs none: the name is not known by that.
   * @throws {ModhostError} OPTION_INVALID
   */
  shown(name: string, host?: string): unknown {
    const declaration = this.#declarations.get(name);
    const found = this.#find(name, host);
    if (declaration === undefined) return found.value;
    const value = found.value ?? declaration.default;
    return value === undefined ? undefined : convert(declaration, found.path, value, this.directory);
  }

  /** Goes on where `former` ends: with its declarations of options, and with its secrets, which stay secrets. */
  follow(former: Config): void {
    for (const [name, declaration] of former.#declarations) this.#declarations.set(name, declaration);
    for (const name of former.#asked) this.#asked.add(name);
    this.hideSecretsOf(former);
  }

  /** The secrets of another configuration are left out of texts, too. */
  hideSecretsOf(other: Config): void {
    this.#otherSecrets = new Set([...this.#otherSecrets, ...other.#otherSecrets, ...other.#secretTexts()]);
    this.#secrets = undefined;
  }

  /** From now on the option of the server, and of each host, has the value that it has in `former`. */
  hold(name: string, former: Config): void {
    this.#held.set(name, { path: name, value: former.value(name) });
    for (const host of this.#hosts.keys()) {
      const value = former.written(name, host);
      if (value !== undefined) this.#held.set(`${name}@${host}`, { path: `hosts.${host}.${name}`, value });
    }
  }

  /** Names of all options that are set or declared. */
  names(): Set<string> {
    const hosts = [...this.#hosts.values()].flatMap(({ values }) => Object.keys(values));
    return new Set([...this.#declarations.keys(), ...Object.keys(this.#server), ...this.#environment.keys(), ...hosts]);
  }

  /** An option as written for a host itself, else undefined; of the server, where no host is named. */
  written(name: string, host?: string): unknown {
    if (host === undefined) return this.#find(name).value;
    return ownValue(this.#hosts.get(host)?.values ?? {}, name);
  }

  /** Where the value of an option comes from; of a host, "unset" where it has none of its own. */
  source(name: string, host?: string): OptionSource {
    if (host !== undefined) return this.written(name, host) === undefined ? "unset" : this.source("hosts");
    if (this.#environment.has(name)) return "environment";
    if (ownValue(this.#server, name) === undefined)
      return this.#declarations.get(name)?.default === undefined ? "unset" : "default";
    if (this.#given.has(name)) return "caller";
    return this.file !== undefined ? "file" : this.#isDefault ? "default" : "caller";
  }

  /** An option as written, without default. The name counts as known from now on. */
  raw(name: string, host?: string): unknown {
    this.#asked.add(name);
    return this.#find(name, host).value;
  }

  /** A text without the values of secret options that stand in it. */
  mask(text: string): string {
    this.#secrets ??= this.#findSecrets();
    return text.replace(this.#secrets, "(secret)");
  }

  #findSecrets(): RegExp {
    const texts = [...new Set([...this.#secretTexts(), ...this.#otherSecrets].flatMap(spellings))];
    // The longest first: one may begin with another. Without any, nothing matches.
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

  /** Names that are set although nobody declares them or has asked for them, each with the known name next to it, as it is written there. */
  unknownNames(): UnknownName[] {
    const known = new Set([...this.#declarations.keys(), ...this.#asked]);
    const same = (name: string) => name;
    const unknown = (names: Iterable<string>, path: (name: string) => string, written = same): UnknownName[] =>
      [...names]
        .filter((name) => !known.has(name) && !name.startsWith("$"))
        .map((name) => {
          const like = nearest(name, known);
          return { path: path(name), nearest: like && written(like) };
        });
    return [
      ...unknown(Object.keys(this.#server), same),
      ...unknown(this.#environment.keys(), variableOf, variableOf),
      ...[...this.#hosts.values()].flatMap(({ written, values }) =>
        unknown(Object.keys(values), (name) => `hosts.${written}.${name}`),
      ),
    ];
  }

  /** Names of the virtual hosts in their ASCII form, in the order of the file; none when any host is served. */
  hosts(): string[] {
    return [...this.#hosts.keys()];
  }

  #find(name: string, host?: string): Found {
    const held = this.#held.size === 0 ? undefined : (this.#held.get(`${name}@${host}`) ?? this.#held.get(name));
    if (held !== undefined) return held;
    const entry = host === undefined ? undefined : this.#hosts.get(host);
    const own = entry === undefined ? undefined : ownValue(entry.values, name);
    if (entry !== undefined && own !== undefined) return { path: `hosts.${entry.written}.${name}`, value: own };
    const text = this.#environment.get(name);
    if (text === undefined) return { path: name, value: ownValue(this.#server, name) };
    return { path: variableOf(name), value: readVariable(text, this.#declarations.get(name)) };
  }

  *#hostProblems(): Generator<Problem> {
    const { path, value: hosts } = this.#find("hosts");
    const seen = new Set<string>();
    for (const [name, entry] of isObject(hosts) ? Object.entries(hosts) : []) {
      const at = `${path}.${name}`;
      const host = hostName(name);
      if (host === undefined) yield { path: at, value: entry, allowed: "its name must be a host name without port" };
      else if (seen.has(host)) yield { path: at, value: entry, allowed: `the host ${host} is there already` };
      else if (entry !== null && !isObject(entry)) {
        yield { path: at, value: entry, allowed: "it must be an object with the options of this host" };
      }
      if (host !== undefined) seen.add(host);
    }
  }
}

/** A configuration that was not read from a file. */
export function configFrom(values: Record<string, unknown>, directory: string = process.cwd()): Config {
  return new Config({ written: values, directory });
}

/** The variables MODHOST_<OPTION NAME IN CAPITALS>, by option name. */
export function environmentOptions(env: NodeJS.ProcessEnv): Map<string, string> {
  const options = new Map<string, string>();
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith(environmentPrefix) || text === undefined) continue;
    options.set(variable.slice(environmentPrefix.length).toLowerCase(), text);
  }
  return options;
}

/** The variable of the environment that sets an option. */
export function variableOf(name: string): string {
  return environmentPrefix + name.toUpperCase();
}

/** JSON where the type has such a form; lists also as "a, b"; all else is its own text form. */
function readVariable(text: string, declaration: OptionDeclaration | undefined): unknown {
  const type = declaration?.type ?? "any";
  const isList = type === "strings" || type === "ports";
  if (type === "object" || type === "any" || (isList && text.trimStart().startsWith("["))) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  if (!isList) return text;
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function ownValue(values: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(values, name) ? (values[name] ?? undefined) : undefined;
}

/** The ASCII form, lower-case; undefined for what no Host header can carry. */
function hostName(name: string): string | undefined {
  if (/[*:/\s]/.test(name.replace(/^\[[\da-f:.]+\]$/i, ""))) return undefined;
  const ascii = domainToASCII(name);
  return ascii === "" ? undefined : ascii;
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
