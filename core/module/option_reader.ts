import { type Config, convert } from "../config/index.ts";
import type { OptionDeclaration, OptionType } from "../types.ts";

/** Reads options for one module on one host. */
export class OptionReader {
  readonly #configOf: () => Config;
  readonly #host: () => string;
  readonly #read: (name: string, host: string, isDeclared: boolean) => void;

  /**
   * `config` returns the configuration in force for the module. `read` is called for each option
   * that is read, with the host and whether the option is declared.
   */
  constructor(
    config: () => Config,
    host: () => string,
    read: (name: string, host: string, isDeclared: boolean) => void,
  ) {
    this.#configOf = config;
    this.#host = host;
    this.#read = read;
  }

  get #config(): Config {
    return this.#configOf();
  }

  /** Returns the declared form of an option; the written form if it is not declared. */
  plain(name: string, host = this.#host()): unknown {
    this.#read(name, host, this.#config.declarations().has(name));
    return this.#config.value(name, host === "*" ? undefined : host);
  }

  /**
   * Returns an option as a value of a type, or `fallback` (which may be in the forms of the type,
   * too) if it is not set.
   * @throws {ModhostError} OPTION_INVALID
   * @throws {TypeError} if its declaration has another type and the value does not match this one
   */
  typed<T>(name: string, type: OptionType, fallback: unknown, limits: Partial<OptionDeclaration> = {}): T | undefined {
    const value = this.plain(name) ?? fallback;
    try {
      return this.convert<T>(name, value, type, limits);
    } catch (error) {
      const declared = this.#config.declarations().get(name)?.type;
      // The operator's value is right, since it matches the declaration. A text that is read as an
      // enum is an exception: its reader may refuse it.
      const isNarrowed = declared === "string" && type === "enum";
      if (declared === undefined || declared === type || isNarrowed || value === fallback) throw error;
      const reason = `The option ${name} is declared with the type "${declared}", and read as "${type}"`;
      throw new TypeError(`${reason}: read it with module.get_option`, { cause: error });
    }
  }

  /** Returns the server's list joined with that of the host. */
  inherited(name: string, fallback: readonly string[] | undefined): Set<string> | undefined {
    const lists = [this.plain(name, "*"), this.plain(name)].filter((list) => list !== undefined);
    if (lists.length === 0) return fallback && new Set(fallback);
    return new Set(lists.flatMap((list) => this.convert<string[]>(name, list, "strings") ?? []));
  }

  convert<T>(name: string, value: unknown, type: OptionType, limits: Partial<OptionDeclaration> = {}): T | undefined {
    if (value === undefined) return undefined;
    const { secret = false } = this.#config.declarations().get(name) ?? {};
    return convert({ type, describe: "", ...defined({ ...limits, secret }) }, name, value, this.#config.directory) as T;
  }
}

function defined(limits: Partial<OptionDeclaration>): Partial<OptionDeclaration> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}
