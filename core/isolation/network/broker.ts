/** The host's side of the network of a sandboxed module: checks, resolves and connects for it. */
import { lookup as systemLookup } from "node:dns";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import { joinConnections } from "../../relay/tunnel.ts";
import { isPublicAddress } from "../../util/public_address.ts";

/** Seconds for which a connection attempt may last, all addresses of a name together. */
const DIAL_SECONDS = 30;

/** Decides what a module may connect to. */
export interface NetworkGrant {
  /**
   * Whether the name or address, exactly as the module gives it, may be connected to at the port.
   */
  allows(host: string, port: number): boolean;
  /** Returns the error for a connection that is not granted. */
  refusal(host: string, port: number): Error;
}

/** The two ends of a connection, as the module sees them. */
export interface Dialed {
  readonly id: number;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
}

/** Answers connections in place of other hosts. Tests set it. */
export interface OutsideNetwork {
  /** A certificate in PEM form that sandboxed modules trust in addition. */
  readonly certificate: string;
  /**
   * Returns a connection that is used instead of one to the host; undefined if the host itself is
   * to be dialled.
   * @throws {Error} if there is neither
   */
  connect(host: string, port: number): Socket | undefined;
}

export interface BrokerOptions {
  readonly grant: NetworkGrant;
  /** Opens a connection to the sandbox. */
  readonly open: () => Socket;
  /** The maximum number of connections at the same time. */
  readonly max: number;
  /**
   * Called for each connection that is granted, with the id of the request that needs it, as the
   * sandbox gives it. @throws what the module gets if there are too many
   */
  readonly admit?: (request: unknown) => void;
  /** Resolves names. Default: the system's resolver. */
  readonly lookup?: LookupFunction;
  /** Answers granted connections in place of other hosts. */
  readonly outside?: OutsideNetwork | undefined;
}

export class Broker {
  readonly #options: BrokerOptions;
  readonly #open = new Set<Socket>();
  #dials = 0;
  #pending = 0;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** The number of dials so far, refused ones included. */
  get dials(): number {
    return this.#dials;
  }

  /** The number of connections that are open. */
  get open(): number {
    return this.#open.size;
  }

  /**
   * Connects for the module, and joins the connection with a new one to the sandbox, which begins
   * with the id and a line feed.
   * @throws what the grant gives as refusal, and errors of the network with their codes
   */
  async dial(host: unknown, port: unknown, request?: unknown): Promise<Dialed> {
    if (typeof host !== "string" || host.length === 0 || host.length > 255)
      throw new TypeError("A host is a name of up to 255 characters");
    if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535)
      throw new TypeError("A port is a number from 1 to 65535");
    const id = ++this.#dials;
    // A trailing dot names the same host.
    const name = host.toLowerCase().replace(/\.$/, "");
    if (!this.#options.grant.allows(name, port as number)) throw this.#options.grant.refusal(name, port as number);
    if (this.#pending + this.#open.size >= this.#options.max) {
      const message = `The module has ${this.#options.max} connections, which is its limit`;
      throw Object.assign(new Error(message), { code: "EMFILE" });
    }
    this.#options.admit?.(request);
    this.#pending += 1;
    try {
      const outside =
        this.#options.outside?.connect(name, port as number) ?? (await this.#connect(name, port as number));
      this.#join(id, outside);
      const { localAddress, localPort, remoteAddress, remotePort } = outside;
      return { id, localAddress, localPort, remoteAddress, remotePort };
    } finally {
      this.#pending -= 1;
    }
  }

  /** Ends all connections of the module. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #connect(host: string, port: number): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    // An address was granted literally, so it may be private. A name may not lead there.
    const socket = connect({ host, port, lookup: this.#publicLookup(host, port), allowHalfOpen: true });
    const timer = setTimeout(() => {
      const message = `connect ETIMEDOUT ${host}:${port}`;
      socket.destroy(Object.assign(new Error(message), { code: "ETIMEDOUT", syscall: "connect" }));
    }, DIAL_SECONDS * 1000);
    socket.once("error", reject);
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", reject);
      resolve(socket);
    });
    return promise;
  }

  /** Resolves a name to its public addresses only: what is connected to is what was checked. */
  #publicLookup(host: string, port: number): LookupFunction {
    const { lookup = systemLookup as unknown as LookupFunction, grant } = this.#options;
    return (name, options, callback) => {
      lookup(name, { ...options, all: true }, (error, found) => {
        if (error !== null) {
          callback(error, [], 0);
          return;
        }
        const addresses = typeof found === "string" ? [{ address: found, family: isIP(found) }] : found;
        const usable = addresses.filter(({ address }) => isPublicAddress(address) || grant.allows(address, port));
        const [first] = usable;
        if (first === undefined) {
          const all = addresses.map(({ address }) => address).join(", ");
          callback(Object.assign(grant.refusal(host, port), { detail: `it resolves to ${all}` }), [], 0);
        } else if (options.all === true) callback(null, usable);
        else callback(null, first.address, first.family);
      });
    };
  }

  #join(id: number, outside: Socket): void {
    const inside = this.#options.open();
    this.#open.add(outside);
    outside.once("close", () => this.#open.delete(outside));
    inside.write(`${id}\n`);
    joinConnections(inside, outside);
  }
}
