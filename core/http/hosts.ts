/** The host name of a Host header or authority: lower case, without port and final dot; undefined when malformed. */
export function hostName(authority: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::\d{0,5})?$/i.exec(authority);
  return match?.[1]?.toLowerCase().replace(/\.$/, "");
}

/** Chooses the virtual host of a request. */
export class VirtualHosts {
  readonly #names: ReadonlySet<string>;
  readonly #fallback: string | undefined;
  /** True when any Host is served. */
  readonly any: boolean;

  constructor(names: readonly string[], fallback: string | undefined) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
    this.#fallback = fallback?.toLowerCase();
    this.any = names.length === 0;
  }

  /** The host that serves an authority; "*" with no virtual hosts, undefined for an unknown one. */
  choose(authority: string | undefined): string | undefined {
    if (this.any) return "*";
    const name = authority === undefined ? undefined : hostName(authority);
    return name !== undefined && this.#names.has(name) ? name : this.#fallback;
  }
}
