import { createServer, type Server, type Socket } from "node:net";
import type { Config } from "../config/index.ts";
import type { ListeningPort, NetEndpoint } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { changePorts, type Open, type PortsChange, type PortsDifference } from "./change.ts";
import { Connections } from "./connections.ts";
import { changeEndpoints } from "./endpoints_change.ts";
import { portFailure } from "./failure.ts";
import { hold } from "./hold.ts";
import { type HeldPort, Inherited, type InheritedSocket } from "./inherited.ts";
import { borrow, type LentPorts, type SharedPort, sharedOf } from "./lent.ts";
import { codeOf, lacksAddress, listen, listenAt, placeText, refusals } from "./listen.ts";
import { type Place, placeDifference, placesOf } from "./places.ts";
import { boundPort, close, current, endpointsOf, type Provider, type Service, shut } from "./service.ts";

/**
 * The listening sockets of the host. A provider (an item of kind "net-provider") names its options; each connection goes
 * to the newest provider of its service, so that one instance of a module can follow another on the same socket.
 */
export class Ports {
  #config: Config;
  readonly #services = new Map<string, Service>();
  readonly #connections = new Connections();
  /** Endpoints that providers have named since they were added. */
  readonly #named = new WeakMap<Provider, readonly NetEndpoint[]>();
  readonly #opening = new Set<Promise<void>>();
  /** Failures for the caller of `settle`; without one they are logged. */
  #failures: unknown[] | undefined;
  #isOpen = false;
  readonly #inherited: Inherited;

  /** Another process opens the ports; then options ask for none. */
  readonly #lent: LentPorts | undefined;

  constructor(config: Config, inherited: readonly InheritedSocket[] = [], lent?: LentPorts) {
    this.#config = config;
    this.#inherited = new Inherited(inherited);
    this.#lent = lent;
    lent?.follow((name) => {
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
    if (this.#isOpen && service.providers.size === 1) this.#open(service);
  }

  /** The ports of a service close with its last provider. */
  remove(provider: Provider): void {
    const service = this.#services.get(provider.item.name);
    service?.providers.delete(provider);
    if (service === undefined || service.providers.size > 0) return;
    this.#services.delete(service.name);
    close(service);
  }

  /**
   * Opens the ports that declared options name, and closes them again: without them nothing need be loaded or made. Gives
   * PORT_TAKEN or PORT_FORBIDDEN for each that cannot be opened.
   */
  async *refused(): AsyncGenerator<ModhostError, void, undefined> {
    // Of those that were inherited it is not known yet where they listen.
    if (this.#inherited.isUsed || this.#lent !== undefined) return;
    for (const [option, { type }] of this.#config.declarations()) {
      const name = /^(.+)_ports$/.exec(option)?.[1];
      if (name === undefined || type !== "ports") continue;
      const { ports, interfaces } = endpointsOf(this.#config, { name });
      for (const port of ports.filter((port) => port !== 0)) {
        for (const host of interfaces.map((address) => (address === "*" ? "0.0.0.0" : address))) {
          const server = createServer();
          const error = await listen(server, { host, port }).catch((error: unknown) => error);
          server.close();
          if (refusals.has(codeOf(error))) yield this.#failure({ name }, host, port, error);
        }
      }
    }
  }

  /**
   * Opens the ports of all providers; sockets that were inherited take the place of those that they fit. Gives a line for
   * each that fits none.
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

  /** Waits for ports that are being opened; fails with the first that could not be. */
  async settle(): Promise<void> {
    const failures = (this.#failures ??= []);
    while (this.#opening.size > 0) await Promise.all(this.#opening);
    this.#failures = undefined;
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Gives a connection to a service, as if it had come in through a port.
   * @throws {ModhostError} SERVICE_MISSING
   */
  connect(name: string, socket: Socket): void {
    const service = this.#services.get(name);
    if (service === undefined) throw new ModhostError("SERVICE_MISSING", { service: name });
    this.#connections.accept(service, socket, false);
  }

  /** Connections that came in through ports and are open. */
  connections(): number {
    return this.#connections.count();
  }

  /** Cuts the connections of a module whose services are gone; those of a service that goes on are its successor's. */
  hangUp(owner: string): void {
    this.#connections.hangUp(owner);
  }

  /** One line for each service, and for each connection of a service that is gone. */
  ownedBy(owner: string): string[] {
    const isOwn = (provider: Provider) => provider.owner.name === owner;
    const services = [...this.#services.values()].filter(({ providers }) => [...providers].some(isOwn));
    return [...services.map(({ name }) => `service ${name}`), ...this.#connections.orphansOf(owner)];
  }

  /** What another configuration would open and close. */
  difference(next: Config): PortsDifference[] {
    if (!this.#isOpen || this.#lent !== undefined) return [];
    return [...this.#services.values()].flatMap((service) => {
      const provider = current(service)?.item;
      if (provider === undefined) return [];
      const asked = service.servers.flatMap(({ place }) => (place === undefined ? [] : [place]));
      // An address that this machine lacks was asked for, too, though it is not open.
      const before = placesOf(endpointsOf(this.#config, provider));
      const found = placeDifference(before, placesOf(endpointsOf(next, provider)), asked);
      const isSame = found.opened.length === 0 && found.closed.length === 0;
      const bound = found.closed.map((place) => boundPort(service.servers.find((open) => open.place === place)));
      return isSame ? [] : [{ service: service.name, ...found, bound }];
    });
  }

  /**
   * Goes by another configuration from now on: opens what it asks for beside what is open. Where the system does not let
   * one address be opened beside another ("*" beside 127.0.0.1, of one port), the old one is closed first.
   * @throws {ModhostError} PORT_TAKEN, PORT_FORBIDDEN, PORT_UNAVAILABLE: everything is what it was before then
   */
  async change(next: Config): Promise<PortsChange> {
    const former = this.#config;
    const found = this.difference(next);
    this.#config = next;
    const restore = () => {
      this.#config = former;
    };
    try {
      const { commit, undo } = await changePorts(found, {
        open: (name) => this.#services.get(name)?.servers ?? [],
        listen: async (name, place) => {
          const service = this.#services.get(name);
          return service && this.#openPlace(service, place);
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

  /** No further connection is accepted; those that are there go on. */
  close(): void {
    this.#isOpen = false;
    for (const service of this.#services.values()) close(service);
  }

  /**
   * As `close`, but ports stay open for the host that comes next, and connections wait for it. Unix sockets are closed: their
   * paths are opened anew.
   */
  async hold(): Promise<HeldPort[]> {
    this.#isOpen = false;
    const held: HeldPort[] = [];
    for (const service of this.#services.values()) {
      for (const open of service.servers) {
        const port = await hold(service.name, open);
        if (port === undefined) open.server.close();
        else held.push(port);
      }
      service.servers = [];
    }
    return held;
  }

  /** Waits for the first bytes of connections that were accepted, for a moment. */
  heard(): Promise<void> {
    return this.#connections.heard();
  }

  /** Cuts the connections that are left. */
  destroy(): void {
    this.#connections.destroy();
  }

  /** What other processes of the server can listen on, too. */
  shared(): SharedPort[] {
    return [...this.#services.values()].flatMap((service) => sharedOf(service));
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
      if (this.#failures !== undefined) this.#failures.push(error);
      else current(service)?.owner.log.error("%s", reasonOf(error));
    };
    const listening =
      this.#lent === undefined
        ? this.#listenAll(service)
            .catch(failed)
            .then(() => this.#listenBeside(service))
        : this.#borrow(this.#lent, service);
    const work = listening.catch(failed);
    this.#opening.add(work);
    void work.then(() => this.#opening.delete(work));
  }

  /** One after the other: each asks for what it does not know yet. */
  async #borrow(lent: LentPorts, service: Service): Promise<void> {
    await Promise.all(this.#opening);
    const serve = (socket: Socket) => this.#connections.accept(service, socket, true);
    await borrow(lent, service, serve, ({ server, key }) => this.#take(service, server, undefined, undefined, key));
  }

  async #listenAll(service: Service): Promise<void> {
    const provider = current(service)?.item;
    if (provider === undefined) return;
    const named = this.#inherited.named(service.name, (socket) => this.#connections.accept(service, socket, true));
    for (const server of named) this.#take(service, server);
    if (named.length > 0) return;
    const places = placesOf(endpointsOf(this.#config, provider));
    for (const asked of new Set(places.map(({ group }) => group))) {
      const skipped: unknown[] = [];
      const group = places.filter((place) => place.group === asked);
      for (const place of group) {
        try {
          await this.#listen(service, place);
        } catch (error) {
          if (!lacksAddress(error, place.address)) throw error;
          skipped.push(error);
        }
      }
      if (skipped.length === group.length && skipped.length > 0) throw skipped[0];
    }
  }

  /** Undefined where this machine lacks the address. */
  async #openPlace(service: Service, place: Place): Promise<Open | undefined> {
    try {
      return await this.#listen(service, place);
    } catch (error) {
      if (lacksAddress(error, place.address)) return undefined;
      throw error;
    }
  }

  /** @throws {ModhostError} ENDPOINT_UNAVAILABLE for one that is required */
  async #listenBeside(service: Service): Promise<void> {
    const provider = current(service);
    const { item, owner } = provider ?? {};
    const named = provider && this.#named.get(provider);
    for (const endpoint of named ?? item?.endpoints ?? []) {
      try {
        await this.#listenEndpoint(service, endpoint);
      } catch (error) {
        const details = { place: placeText(endpoint), reason: reasonOf(error), service: service.name, endpoint };
        if (endpoint.required === true) throw new ModhostError("ENDPOINT_UNAVAILABLE", details, { cause: error });
        if (endpoint.failed !== undefined) endpoint.failed(details.reason);
        else owner?.log.warn("%s is not listened on: %s", details.place, details.reason);
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
    endpoint.listening?.(bound !== null && typeof bound === "object" ? bound.port : undefined);
  }

  /** Other endpoints of a provider whose service listens; before that they are those that it begins with. */
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

  /** Keeps what listens now; false when the host has been stopped, or the service has gone, meanwhile. */
  #take(service: Service, server: Server, place?: Place, endpoint?: NetEndpoint, key?: string): boolean {
    const owner = current(service)?.owner;
    server.on("error", (error) => owner?.log.error("%s: %s", service.name, reasonOf(error)));
    const isWanted = this.#isOpen && service.providers.size > 0;
    if (isWanted) service.servers.push({ server, place, endpoint, ...(key === undefined ? {} : { key }) });
    else server.close();
    return isWanted;
  }

  async #listen(service: Service, place: Place, port = this.#portOf(service, place)): Promise<Open> {
    const inherited = this.#inherited.bound(service.name, place, (socket) =>
      this.#connections.accept(service, socket, true),
    );
    if (inherited !== undefined && this.#take(service, inherited, place)) return { server: inherited, place };
    const server = this.#server(service);
    const { address, port: asked } = place;
    const candidates = address === "*" ? ["::", "0.0.0.0"] : [address];
    for (const [at, candidate] of candidates.entries()) {
      try {
        await listen(server, { host: candidate, port });
        break;
      } catch (error) {
        if (at < candidates.length - 1 && lacksAddress(error, "::")) continue;
        if (asked === 0 && port !== 0) return this.#listen(service, place, 0);
        throw this.#failure(service, candidate, port, error);
      }
    }
    this.#take(service, server, place);
    return { server, place };
  }

  /** Port 0 is one port of the system's choice, the same on every address. */
  #portOf(service: Service, { port, group }: Place): number {
    if (port !== 0) return port;
    const bound = service.servers.find(({ place }) => place?.group === group)?.server.address();
    return bound !== null && typeof bound === "object" ? bound.port : 0;
  }

  #failure({ name }: Pick<Service, "name">, address: string, port: number, error: unknown): ModhostError {
    return portFailure({ service: name, address, port }, error, this.listening());
  }
}
