import { createServer, type Server, type Socket } from "node:net";
import type { Config } from "../config/index.ts";
import type { ListeningPort, NetEndpoint } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { actAs } from "../util/usage.ts";
import { type BindAddress, bindAddressDifference, bindAddressesOf } from "./bind_addresses.ts";
import { changePorts, type Open, type PortsChange, type PortsDifference } from "./change.ts";
import { Connections } from "./connections.ts";
import { changeEndpoints } from "./endpoints_change.ts";
import { portFailure } from "./failure.ts";
import { Inherited, type InheritedSocket, type PausedPort } from "./inherited.ts";
import { endpointText, lacksAddress, listenAnywhere, listenAt } from "./listen.ts";
import { pausePort } from "./pause.ts";
import { type RefusedPort, refusedPorts } from "./refused.ts";
import {
  boundPort,
  close,
  current,
  endpointsOf,
  isOptional,
  type Provider,
  portOption,
  type Service,
  shut,
  shutAll,
} from "./service.ts";
import { listenOnShared, type SharedPort, type SharedPorts, shareablePorts } from "./shared.ts";

/**
 * The listening sockets of the host. A provider (an item of kind "net-provider") names its options;
 * each connection goes to the newest provider of its service, so that one instance of a module can
 * follow another on the same socket.
 */
export class Ports {
  #config: Config;
  readonly #services = new Map<string, Service>();
  readonly #connections = new Connections();
  /** Endpoints that providers have set after they were added. */
  readonly #named = new WeakMap<Provider, readonly NetEndpoint[]>();
  readonly #opening = new Set<Promise<void>>();
  /** Failures for the caller of `settle`; without one they are logged. */
  #failures: unknown[] | undefined;
  #isOpen = false;
  readonly #inherited: Inherited;

  /** Set if another process opens the ports; the options are not used then. */
  readonly #shared: SharedPorts | undefined;

  constructor(config: Config, inherited: readonly InheritedSocket[] = [], shared?: SharedPorts) {
    this.#config = config;
    this.#inherited = new Inherited(inherited);
    this.#shared = shared;
    shared?.onChange((name) => {
      const service = this.#services.get(name);
      if (service !== undefined && this.#isOpen) this.#open(service);
    });
  }

  /**
   * Adds a provider; its ports open when the host's ports are open.
   * @throws {ModhostError} OPTION_INVALID
   */
  add(provider: Provider): void {
    const { name, onconnect } = provider.item;
    if (typeof name !== "string" || typeof onconnect !== "function") {
      throw new TypeError('provides("net") needs { name, onconnect(socket) }');
    }
    let service = this.#services.get(name);
    if (service === undefined) this.#services.set(name, (service = { name, providers: new Set(), servers: [] }));
    endpointsOf(this.#config, provider.item);
    service.providers.add(provider);
    provider.item.endpoints_change?.((endpoints) => this.#changeEndpoints(provider, endpoints));
    // A reload of the module also retries a port that could not be opened.
    if (this.#isOpen && (service.providers.size === 1 || service.servers.length === 0)) this.#open(service);
  }

  /** Removes a provider; the ports of a service close with its last provider. */
  remove(provider: Provider): void {
    const service = this.#services.get(provider.item.name);
    service?.providers.delete(provider);
    if (service === undefined || service.providers.size > 0) return;
    this.#services.delete(service.name);
    close(service);
  }

  /**
   * Opens the ports that declared options name, and closes them again, before anything is loaded or
   * created. Yields PORT_TAKEN, PORT_FORBIDDEN or PORT_UNAVAILABLE for each that cannot be opened,
   * and whether a server starts without it.
   */
  async *refused(): AsyncGenerator<RefusedPort, void, undefined> {
    // For inherited sockets it is not known yet where they listen.
    if (this.#inherited.isUsed || this.#shared !== undefined) return;
    yield* refusedPorts(this.#config, (port, before) =>
      portFailure(port, port.error, before, (name) => portOption(this.#config, name)),
    );
  }

  /**
   * Opens the ports of all providers; matching inherited sockets are used instead. Returns one line
   * for each inherited socket that matches none.
   * @throws {ModhostError} PORT_TAKEN, PORT_FORBIDDEN, PORT_UNAVAILABLE
   */
  async open(): Promise<string[]> {
    const faults = this.#inherited.isUsed ? await this.#inherited.adopt() : [];
    this.#isOpen = true;
    this.#failures = [];
    for (const service of this.#services.values()) this.#open(service);
    try {
      await this.settle();
    } finally {
      faults.push(...this.#inherited.close());
    }
    return faults;
  }

  /** Waits for ports that are being opened; rejects with the first failure. */
  async settle(): Promise<void> {
    const failures = (this.#failures ??= []);
    while (this.#opening.size > 0) await Promise.all(this.#opening);
    this.#failures = undefined;
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Passes a connection to a service, as if it had come in through a port.
   * @throws {ModhostError} SERVICE_MISSING
   */
  connect(name: string, socket: Socket): void {
    const service = this.#services.get(name);
    if (service === undefined) throw new ModhostError("SERVICE_MISSING", { service: name });
    this.#connections.accept(service, socket, false);
  }

  /** Returns the number of open connections that came in through ports. */
  connections(): number {
    return this.#connections.count();
  }

  /**
   * Closes the connections of a module whose services are gone. If another module has taken over a
   * service, its connections stay open.
   */
  hangUp(owner: string): void {
    this.#connections.hangUp(owner);
  }

  /** Returns one line for each service, and for each connection of a service that is gone. */
  ownedBy(owner: string): string[] {
    const isOwn = (provider: Provider) => provider.owner.name === owner;
    const services = [...this.#services.values()].filter(({ providers }) => [...providers].some(isOwn));
    return [...services.map(({ name }) => `service ${name}`), ...this.#connections.orphansOf(owner)];
  }

  /** Returns the ports that another configuration would open and close. */
  difference(next: Config): PortsDifference[] {
    if (!this.#isOpen || this.#shared !== undefined) return [];
    return [...this.#services.values()].flatMap((service) => {
      const provider = current(service)?.item;
      if (provider === undefined) return [];
      const requested = service.servers.flatMap(({ bindAddress }) => (bindAddress === undefined ? [] : [bindAddress]));
      // An address that this machine does not have was requested, too, though it is not open.
      const before = bindAddressesOf(endpointsOf(this.#config, provider));
      const found = bindAddressDifference(before, bindAddressesOf(endpointsOf(next, provider)), requested);
      const isSame = found.opened.length === 0 && found.closed.length === 0;
      const bound = found.closed.map((bindAddress) =>
        boundPort(service.servers.find((open) => open.bindAddress === bindAddress)),
      );
      return isSame ? [] : [{ service: service.name, ...found, bound }];
    });
  }

  /**
   * Switches to another configuration: opens its new ports next to the open ones. If the system
   * does not allow an address next to an open one ("*" next to 127.0.0.1, with the same port), the
   * old one is closed first.
   * @throws {ModhostError} PORT_TAKEN, PORT_FORBIDDEN, PORT_UNAVAILABLE: the previous state is
   * restored then
   */
  async change(next: Config): Promise<PortsChange> {
    const previous = this.#config;
    const found = this.difference(next);
    this.#config = next;
    const restore = () => {
      this.#config = previous;
    };
    try {
      const { commit, undo } = await changePorts(found, {
        open: (name) => this.#services.get(name)?.servers ?? [],
        listen: async (name, bindAddress) => {
          const service = this.#services.get(name);
          return service && this.#openBindAddress(service, bindAddress);
        },
        shut: async (name, open) => {
          const service = this.#services.get(name);
          if (service !== undefined) await shut(service, open);
        },
      });
      return { commit, undo: () => undo().finally(restore) };
    } catch (error) {
      restore();
      throw error;
    }
  }

  /** Resolves when no new connections are accepted; open ones are not affected. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.all([...this.#services.values()].map(shutAll));
  }

  /**
   * Works as `close`, but ports stay open for the next host, and new connections wait for it. Unix
   * sockets are closed: the next host opens their paths again.
   */
  async pause(): Promise<PausedPort[]> {
    this.#isOpen = false;
    const paused: PausedPort[] = [];
    for (const service of this.#services.values()) {
      for (const open of service.servers) {
        const port = await pausePort(service.name, open);
        if (port === undefined) await shut(service, open);
        else paused.push(port);
      }
      service.servers = [];
    }
    return paused;
  }

  /** Waits a moment for the first bytes of accepted connections. */
  receivedFirstBytes(): Promise<void> {
    return this.#connections.receivedFirstBytes();
  }

  /** Closes the remaining connections. */
  destroy(): void {
    this.#connections.destroy();
  }

  /** Returns the ports on which other processes of the server can listen, too. */
  shared(): SharedPort[] {
    return [...this.#services.values()].flatMap((service) => shareablePorts(service));
  }

  listening(): ListeningPort[] {
    return [...this.#services.values()].flatMap((service) =>
      service.servers.flatMap(({ server }) => {
        const bound = server.address();
        if (bound === null || typeof bound === "string") return [];
        const { scheme } = current(service)?.item ?? {};
        return [{ service: service.name, scheme, address: bound.address, port: bound.port }];
      }),
    );
  }

  #open(service: Service): void {
    const failed = (error: unknown) => {
      close(service);
      const { item, owner } = current(service) ?? {};
      if (isOptional(this.#config, service.name)) {
        if (item?.failed === undefined) owner?.log.warn("%s", reasonOf(error));
        else item.failed(reasonOf(error));
      } else if (this.#failures !== undefined) this.#failures.push(error);
      else owner?.log.error("%s", reasonOf(error));
    };
    const listening =
      this.#shared === undefined
        ? this.#listenAll(service)
            .catch(failed)
            .then(() => this.#listenEndpoints(service))
        : this.#listenOnShared(this.#shared, service);
    const work = listening.catch(failed);
    this.#opening.add(work);
    void work.then(() => this.#opening.delete(work));
  }

  /**
   * Runs one service after another, because each requests only sockets that it does not know yet.
   */
  async #listenOnShared(shared: SharedPorts, service: Service): Promise<void> {
    await Promise.all(this.#opening);
    const serve = (socket: Socket) => this.#connections.accept(service, socket, true);
    await listenOnShared(shared, service, serve, ({ server, key }) =>
      this.#take(service, server, undefined, undefined, key),
    );
  }

  async #listenAll(service: Service): Promise<void> {
    const provider = current(service)?.item;
    if (provider === undefined) return;
    const named = this.#inherited.named(service.name, (socket) => this.#connections.accept(service, socket, true));
    for (const server of named) this.#take(service, server);
    if (named.length > 0) return;
    const bindAddresses = bindAddressesOf(endpointsOf(this.#config, provider));
    for (const requested of new Set(bindAddresses.map(({ group }) => group))) {
      const skipped: unknown[] = [];
      const group = bindAddresses.filter((bindAddress) => bindAddress.group === requested);
      for (const bindAddress of group) {
        try {
          await this.#listen(service, bindAddress);
        } catch (error) {
          if (!lacksAddress(error, bindAddress.address)) throw error;
          skipped.push(error);
        }
      }
      if (skipped.length === group.length && skipped.length > 0) throw skipped[0];
    }
  }

  /** Resolves to undefined if this machine does not have the address. */
  async #openBindAddress(service: Service, bindAddress: BindAddress): Promise<Open | undefined> {
    try {
      return await this.#listen(service, bindAddress);
    } catch (error) {
      if (lacksAddress(error, bindAddress.address)) return undefined;
      throw error;
    }
  }

  /** @throws {ModhostError} ENDPOINT_UNAVAILABLE for a required endpoint */
  async #listenEndpoints(service: Service): Promise<void> {
    const provider = current(service);
    const { item, owner } = provider ?? {};
    const named = provider && this.#named.get(provider);
    for (const endpoint of named ?? item?.endpoints ?? []) {
      try {
        await this.#listenEndpoint(service, endpoint);
      } catch (error) {
        const details = {
          bindAddress: endpointText(endpoint),
          reason: reasonOf(error),
          service: service.name,
          endpoint,
        };
        if (endpoint.required === true) throw new ModhostError("ENDPOINT_UNAVAILABLE", details, { cause: error });
        if (endpoint.failed !== undefined && owner !== undefined) actAs(owner, () => endpoint.failed?.(details.reason));
        else owner?.log.warn("Cannot listen on %s: %s", details.bindAddress, details.reason);
      }
    }
  }

  async #listenEndpoint(service: Service, endpoint: NetEndpoint): Promise<void> {
    const serve = (socket: Socket) => this.#connections.accept(service, socket, true);
    const inherited = this.#inherited.endpoint(service.name, endpoint, serve);
    const server = inherited ?? this.#server(service);
    if (inherited === undefined) await listenAt(server, endpoint);
    const bound = server.address();
    if (!this.#take(service, server, undefined, endpoint)) return;
    const port = bound !== null && typeof bound === "object" ? bound.port : undefined;
    const owner = current(service)?.owner;
    if (owner !== undefined) actAs(owner, () => endpoint.listening?.(port));
  }

  /**
   * Changes the endpoints of a provider. Before its service listens, they only replace the initial
   * ones.
   */
  async #changeEndpoints(provider: Provider, endpoints: readonly NetEndpoint[]): Promise<void> {
    const service = this.#services.get(provider.item.name);
    if (service === undefined) return;
    await Promise.all(this.#opening);
    if (this.#isOpen && current(service) === provider) {
      await changeEndpoints(endpoints, {
        open: () => service.servers,
        listen: (endpoint) => this.#listenEndpoint(service, endpoint),
        shut: (open) => shut(service, open),
      });
    }
    this.#named.set(provider, endpoints);
  }

  #server(service: Service): Server {
    return createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      this.#connections.accept(service, socket, true),
    );
  }

  /**
   * Adds a listening server; returns false if the host was stopped or the service removed
   * meanwhile.
   */
  #take(service: Service, server: Server, bindAddress?: BindAddress, endpoint?: NetEndpoint, key?: string): boolean {
    const owner = current(service)?.owner;
    server.on("error", (error) => owner?.log.error("%s: %s", service.name, reasonOf(error)));
    const isWanted = this.#isOpen && service.providers.size > 0;
    const isShared = key !== undefined || this.#inherited.isGiven(server);
    if (isWanted)
      service.servers.push({
        server,
        bindAddress: bindAddress,
        endpoint,
        isShared,
        ...(key === undefined ? {} : { key }),
      });
    else server.close();
    return isWanted;
  }

  async #listen(service: Service, bindAddress: BindAddress, port = this.#portOf(service, bindAddress)): Promise<Open> {
    const inherited = this.#inherited.bound(service.name, bindAddress, (socket) =>
      this.#connections.accept(service, socket, true),
    );
    if (inherited !== undefined && this.#take(service, inherited, bindAddress))
      return { server: inherited, bindAddress: bindAddress };
    const server = this.#server(service);
    const { address, port: requested } = bindAddress;
    try {
      await listenAnywhere(server, address, port);
    } catch (error) {
      if (requested === 0 && port !== 0) return this.#listen(service, bindAddress, 0);
      throw this.#failure(service, address, port, error);
    }
    this.#take(service, server, bindAddress);
    return { server, bindAddress: bindAddress };
  }

  /**
   * Returns the port to open. Port 0 is one port that the system chooses, the same on every
   * interface.
   */
  #portOf(service: Service, { port, group }: BindAddress): number {
    if (port !== 0) return port;
    const bound = service.servers.find(({ bindAddress }) => bindAddress?.group === group)?.server.address();
    return bound !== null && typeof bound === "object" ? bound.port : 0;
  }

  #failure({ name }: Pick<Service, "name">, address: string, port: number, error: unknown): ModhostError {
    const optionOf = (service: string) => portOption(this.#config, service);
    return portFailure({ service: name, address, port }, error, this.listening(), optionOf);
  }
}
