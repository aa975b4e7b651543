import { type Config, convert } from "../config/index.ts";
import type { OptionDeclaration, OptionType } from "../types.ts";

/** The options as one module on one host reads them. */
export class OptionReader {
  readonly #config: Config;
  readonly #host: () => string;

  constructor(config: Config, host: () => string) {
    this.#config = config;
    this.#host = host;
  }

  /** As declared; as written where nobody declared it. */
  plain(name: string, host = this.#host()): unknown {
    return this.#config.value(name, host === "*" ? undefined : host);
  }

  /**
   * An option as a value of a type; `fallback` (in the forms of the type, too) when it is not set.
   * @throws {ModhostError} OPTION_INVALID
   */
  typed<T>(name: string, type: OptionType, fallback: unknown, limits: Partial<OptionDeclaration> = {}): T | undefined {
    return this.convert<T>(name, this.plain(name) ?? fallback, type, limits);
  }

  /** The server's list joined with that of the host. */
  inherited(name: string, fallback: readonly string[] | undefined): Set<string> | undefined {
    const lists = [this.plain(name, "*"), this.plain(name)].filter((list) => list !== undefined);
    if (lists.length === 0) return fallback && new Set(fallback);
    return new Set(lists.flatMap((list) => this.convert<string[]>(name, list, "strings") ?? []));
  }

  convert<T>(name: string, value: unknown, type: OptionType, limits: Partial<OptionDeclaration> = {}): T | undefined {
    if (value === undefined) return undefined;
    return convert({ type, describe: "", ...defined(limits) }, name, value, this.#config.directory) as T;
  }
}

function defined(limits: Partial<OptionDeclaration>): Partial<OptionDeclaration> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}
