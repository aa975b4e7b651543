/**
 * The host's side of the network of a sandboxed module: checks, resolves and connects for it, and
 * carries the connections.
 */
import { lookup as systemLookup } from "node:dns";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import { hostToDial } from "../../permissions/index.ts";
import { joinConnections } from "../../relay/tunnel.ts";
import { isPublicAddress } from "../../util/public_address.ts";

/** Seconds for which a connection attempt may last, all addresses of a name together. */
const DIAL_SECONDS = 30;

/** Decides what a module may connect to. */
export interface NetworkGrant {
  /** Whether the name or address may be connected to at the port. */
  allows(host: string, port: number): boolean;
  /** Returns the error for a connection that is not granted. */
  refusal(host: string, port: number): Error;
}

/** The two ends of a connection, as the module sees them, and the number of the connection. */
export interface CarriedEnds {
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
  #ids = 0;
  #pending = 0;
  /** Resolves when the lookups so far have ended. */
  #lookups: Promise<void> = Promise.resolve();

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
  async dial(host: unknown, port: unknown, request?: unknown): Promise<CarriedEnds> {
    if (typeof host !== "string" || host.length === 0 || host.length > 255)
      throw new TypeError("A host is a name of up to 255 characters");
    if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535)
      throw new TypeError("A port is a number from 1 to 65535");
    this.#dials += 1;
    const { grant } = this.#options;
    const name = hostToDial(host);
    if (name === undefined) throw grant.refusal(host.toLowerCase(), port as number);
    if (!grant.allows(name, port as number)) throw grant.refusal(name, port as number);
    if (this.#isFull) {
      const message = `The module has ${this.#options.max} connections, which is its limit`;
      throw Object.assign(new Error(message), { code: "EMFILE" });
    }
    this.#options.admit?.(request);
    this.#pending += 1;
    try {
      const outside = this.#options.outside?.connect(name, port as number);
      return this.#join(outside ?? (await this.#connect(name, port as number)));
    } finally {
      this.#pending -= 1;
    }
  }

  /**
   * Joins a connection that a port of the module has accepted with a new one to the sandbox.
   * Returns undefined, and closes it, if the module has as many connections as it may have.
   */
  accept(outside: Socket): CarriedEnds | undefined {
    if (!this.#isFull) return this.#join(outside);
    outside.destroy();
    return undefined;
  }

  get #isFull(): boolean {
    return this.#pending + this.#open.size >= this.#options.max;
  }

  /** Ends all connections of the module. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #connect(host: string, port: number): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    // A granted address may be private. A granted name must not lead to a private address: whoever
    // controls the name could point it at this machine.
    const resolver = this.#publicLookup(host, port);
    const socket: Socket = connect({
      host,
      port,
      allowHalfOpen: true,
      lookup: (...values) => this.#inTurn((done) => (socket.destroyed ? done() : resolver(done, ...values))),
    });
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

  /**
   * Starts one lookup of the module at a time. The system resolves two names at once for the whole
   * server, and a module can name hosts that take long.
   */
  #inTurn(start: (done: () => void) => void): void {
    this.#lookups = this.#lookups.then(() => new Promise<void>(start)).catch(() => undefined);
  }

  /** Resolves a name to its public addresses only: what is connected to is what was checked. */
  #publicLookup(host: string, port: number): (done: () => void, ...values: Parameters<LookupFunction>) => void {
    const { lookup = systemLookup as unknown as LookupFunction, grant } = this.#options;
    return (done, name, options, callback) => {
      lookup(name, { ...options, all: true }, (error, found) => {
        done();
        if (error !== null) {
          callback(error, [], 0);
          return;
        }
        const addresses = typeof found === "string" ? [{ address: found, family: isIP(found) }] : found;
        const usable = addresses.filter(({ address }) => isPublicAddress(address) || grant.allows(address, port));
        const [first] = usable;
        if (first === undefined) {
          // The name itself is granted, and its address is not.
          callback(grant.refusal(addresses[0]?.address ?? host, port), [], 0);
        } else if (options.all === true) callback(null, usable);
        else callback(null, first.address, first.family);
      });
    };
  }

  #join(outside: Socket): CarriedEnds {
    const id = ++this.#ids;
    const { localAddress, localPort, remoteAddress, remotePort } = outside;
    const inside = this.#options.open();
    this.#open.add(outside);
    outside.once("close", () => this.#open.delete(outside));
    inside.write(`${id}\n`);
    joinConnections(inside, outside);
    return { id, localAddress, localPort, remoteAddress, remotePort };
  }
}
