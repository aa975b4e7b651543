import { type Config, convert } from "../config/index.ts";
import type { OptionDeclaration, OptionType } from "../types.ts";

/** The options as one module on one host reads them. */
export class OptionReader {
  readonly #configOf: () => Config;
  readonly #host: () => string;
  readonly #read: (name: string, host: string, isDeclared: boolean) => void;

  /**
   * `config` gives the configuration that is in force for the module; `read` hears of each option that is read, for
   * which host, and whether anybody has declared it.
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

  /** As declared; as written where nobody declared it. */
  plain(name: string, host = this.#host()): unknown {
    this.#read(name, host, this.#config.declarations().has(name));
    return this.#config.value(name, host === "*" ? undefined : host);
  }

  /**
   * An option as a value of a type; `fallback` (in the forms of the type, too) when it is not set.
   * @throws {ModhostError} OPTION_INVALID
   * @throws {TypeError} its declaration has another type, whose value is none of this one
   */
  typed<T>(name: string, type: OptionType, fallback: unknown, limits: Partial<OptionDeclaration> = {}): T | undefined {
    const value = this.plain(name) ?? fallback;
    try {
      return this.convert<T>(name, value, type, limits);
    } catch (error) {
      const declared = this.#config.declarations().get(name)?.type;
      // The operator's value is right: it is what the declaration asks for.
      // A text that is read as one of several is narrowed by its reader, who may refuse it.
      const isNarrowed = declared === "string" && type === "enum";
      if (declared === undefined || declared === type || isNarrowed || value === fallback) throw error;
      const reason = `The option ${name} is declared with the type "${declared}", and read as "${type}"`;
      throw new TypeError(`${reason}: read it with module.get_option`, { cause: error });
    }
  }

  /** The server's list joined with that of the host. */
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
