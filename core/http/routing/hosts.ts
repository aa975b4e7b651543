/**
 * Returns the host name of a Host header or authority: lower case, without port and final dot;
 * undefined when malformed.
 */
export function hostName(authority: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::\d{0,5})?$/i.exec(authority);
  return match?.[1]?.toLowerCase().replace(/\.$/, "");
}

/** Results of `choose` for a malformed name, and for a valid name that is not served here. */
export const badHost = Symbol("bad host");
export const unknownHost = Symbol("unknown host");

const MAX_REMEMBERED_AUTHORITIES = 1000;

/** Chooses the virtual host of a request. */
export class VirtualHosts {
  readonly #names: ReadonlySet<string>;
  readonly #fallback: string | undefined;
  /** Cached results: clients send the same few authorities with every request. */
  readonly #chosen = new Map<string, string | symbol>();

  constructor(names: readonly string[], fallback: string | undefined) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
    this.#fallback = fallback?.toLowerCase();
  }

  /**
   * Returns the host that serves an authority ("*" when any is served), `badHost` or `unknownHost`.
   */
  choose(authority: string | undefined): string | symbol {
    if (authority === undefined) return this.#names.size === 0 ? "*" : (this.#fallback ?? unknownHost);
    let chosen = this.#chosen.get(authority);
    if (chosen === undefined) {
      chosen = this.#match(hostName(authority));
      if (this.#chosen.size >= MAX_REMEMBERED_AUTHORITIES) this.#chosen.clear();
      this.#chosen.set(authority, chosen);
    }
    return chosen;
  }

  #match(name: string | undefined): string | symbol {
    if (name === undefined) return badHost;
    if (this.#names.size === 0) return "*";
    return this.#names.has(name) ? name : (this.#fallback ?? unknownHost);
  }
}
