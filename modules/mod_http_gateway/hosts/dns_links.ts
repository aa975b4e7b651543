/**
 * Looks up which domains are websites, by their DNSLinks. Results are cached, because every unknown
 * host causes a lookup.
 */
import { NodeError, type NodeModule } from "modhost/node";

/** The node does not learn the TTL of DNS responses. */
const LINK_MS = 60_000;
const ABSENCE_MS = 60_000;
const FAILURE_MS = 10_000;
const LOOKUP_MS = 5_000;
const MAX_REMEMBERED = 1000;
/**
 * Anybody can send requests with arbitrary hosts, so the number of concurrent lookups is limited.
 * Other hosts count as having no link.
 */
const MAX_LOOKUPS = 64;

interface Known {
  /** A content path, or the error of the lookup. */
  readonly link: string | Error;
  readonly until: number;
}

export class DnsLinks {
  readonly #node: Pick<NodeModule, "isOpen" | "open" | "lowLevel">;
  /** In the order of the lookups. */
  readonly #known = new Map<string, Known>();
  readonly #looking = new Map<string, Promise<string | Error>>();

  constructor(node: Pick<NodeModule, "isOpen" | "open" | "lowLevel">) {
    this.#node = node;
  }

  /** Returns whether the domain has a link. Returns it at once if it is known. */
  has(domain: string): boolean | Promise<boolean> {
    const known = this.#remembered(domain);
    if (known !== undefined) return typeof known === "string";
    if (this.#looking.size >= MAX_LOOKUPS && !this.#looking.has(domain)) return false;
    return this.#look(domain).then((link) => typeof link === "string");
  }

  /**
   * Returns the path in the link, which can be another name. @throws NodeError if there is no link
   */
  async find(domain: string): Promise<string> {
    const link = this.#remembered(domain) ?? (await this.#look(domain));
    if (typeof link === "string") return link;
    throw link;
  }

  #remembered(domain: string): string | Error | undefined {
    const known = this.#known.get(domain);
    return known === undefined || known.until < performance.now() ? undefined : known.link;
  }

  /** Concurrent callers share one lookup. */
  #look(domain: string): Promise<string | Error> {
    let looking = this.#looking.get(domain);
    if (looking === undefined) {
      looking = this.#ask(domain).finally(() => this.#looking.delete(domain));
      this.#looking.set(domain, looking);
    }
    return looking;
  }

  async #ask(domain: string): Promise<string | Error> {
    let link: string | Error;
    let time = LINK_MS;
    try {
      if (!this.#node.isOpen) await this.#node.open();
      // Only the DNSLink is resolved here. The request resolves IPNS keys later, with its own
      // settings.
      const options = { depth: 1, offline: true, signal: AbortSignal.timeout(LOOKUP_MS) };
      link = (await this.#node.lowLevel.names.find(domain, options)).path;
    } catch (error) {
      link = error as Error;
      const isAbsent = NodeError.is(error) && error.code === "NAME_NOT_FOUND" && error.cause === undefined;
      time = isAbsent ? ABSENCE_MS : FAILURE_MS;
    }
    this.#known.delete(domain);
    this.#known.set(domain, { link, until: performance.now() + time });
    if (this.#known.size > MAX_REMEMBERED) this.#known.delete(this.#known.keys().next().value as string);
    return link;
  }
}
