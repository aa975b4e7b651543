/** Implements the commands `pin remote`: adds, awaits, lists and removes pins at services. */
import { setTimeout as pause } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { parseCid } from "../../formats/cid/text.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { failure, NodeError, reworded } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import type { NodeLog } from "../../util/log.ts";
import { type Multiaddr, parseMultiaddr, splitPeer } from "../swarm/multiaddr.ts";
import type { Swarm } from "../swarm/swarm.ts";
import { type Fetch, PinningClient, type PinObject, type PinQuery, type ServiceAccess } from "./client.ts";
import { isPinStatus, type PinStatusWord, pinStatuses, type RemotePin } from "./responses.ts";
import { accessOf, addService, knownServices, removeService } from "./services.ts";

/** Milliseconds between two requests for the status of a pin. */
const POLL_EVERY_MS = 500;
/** Maximum size of a pin's name in bytes. */
const MAX_NAME_SIZE = 255;

export interface RemotePinsDeps {
  readonly config: Pick<Repo["config"], "value" | "update">;
  readonly log: NodeLog;
  /** Resolves to undefined while the node has no network. */
  readonly swarm: () => Promise<Swarm | undefined>;
  readonly fetch?: Fetch;
}

/** Filters as given to a command, not validated. */
export interface PinFilters {
  readonly name?: string | undefined;
  readonly cids?: readonly string[] | undefined;
  readonly statuses: readonly string[];
}

export interface RemotePinOptions {
  readonly name?: string | undefined;
  /** Whether to return before the object is pinned. */
  readonly background?: boolean | undefined;
  readonly signal: AbortSignal;
}

export type PinCounts = Readonly<Record<PinStatusWord, number>>;

export interface ServiceState {
  readonly name: string;
  readonly endpoint: string;
  /** Undefined if the service was not asked; "invalid" if its response was an error. */
  readonly counts: PinCounts | "invalid" | undefined;
}

/** @throws NodeError for a name that is too long, an unknown status, or an invalid CID */
function queryOf({ name = "", cids = [], statuses }: PinFilters): PinQuery {
  requireName(name);
  for (const cid of cids) {
    try {
      parseCid(cid);
    } catch (error) {
      throw new NodeError("INVALID_CID", `CID ${quote(cid)} cannot be parsed: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
  const words = statuses.map((status) => {
    if (!isPinStatus(status)) throw failure("OPTION_INVALID", { reason: `status ${quote(status)} is not valid` });
    return status;
  });
  return { name, cids, statuses: words };
}

function requireName(name: string): void {
  if (Buffer.byteLength(name) > MAX_NAME_SIZE)
    throw failure("OPTION_INVALID", { reason: `name cannot be longer than ${MAX_NAME_SIZE}` });
}

export class RemotePins {
  readonly #deps: RemotePinsDeps;

  constructor(deps: RemotePinsDeps) {
    this.#deps = deps;
  }

  /** Returns the client of a configured service. @throws NodeError as `accessOf` */
  service(name: string | undefined): PinningClient {
    return new PinningClient(accessOf(this.#deps.config, name), this.#deps.fetch);
  }

  /**
   * Asks a service to pin an object, and connects to its delegates, which fetch the blocks. Unless
   * `background` is set, resolves when the object is pinned.
   *
   * @throws NodeError as PinningClient, if the service fails, and for a delegate that names no peer
   */
  async add(client: PinningClient, cid: CID, { name = "", background, signal }: RemotePinOptions): Promise<RemotePin> {
    requireName(name);
    const pin = await client.add(await this.pinObject(cid, name), signal);
    await this.connectDelegates(pin);
    return background === true ? pin : this.#pinned(client, pin.requestId, signal);
  }

  /** Resolves to the object to send to a service; its origins are this node's addresses. */
  async pinObject(cid: CID, name: string): Promise<PinObject> {
    const peers = await this.#deps.swarm();
    return { cid: cid.toString(), name, origins: peers?.ownAddresses() ?? [] };
  }

  /**
   * Connects to the delegates of a pin in the background; failures are logged. @throws NodeError
   */
  async connectDelegates({ delegates }: RemotePin): Promise<void> {
    const peers = await this.#deps.swarm();
    peers?.connectAll(delegates.flatMap(parsed).map(splitPeer), (id, { message }) =>
      this.#deps.log.write("core/commands", "error", `cannot reach the delegate ${id}: ${message}`),
    );
  }

  async #pinned(client: PinningClient, requestId: string, signal: AbortSignal): Promise<RemotePin> {
    const id = `requestid=${quote(requestId)}`;
    for (;;) {
      const pin = await client.get(requestId, signal).catch((error: Error) => {
        if (!(error instanceof NodeError) || signal.aborted) throw error;
        throw reworded(error, `failed to check pin status for ${id} due to error: ${error.message}`);
      });
      if (pin.requestId !== requestId) {
        const other = `remote service sent unexpected requestid=${quote(pin.requestId)}`;
        throw failure("PINNING_SERVICE_FAILED", { reason: `failed to check pin status for ${id}, ${other}` });
      }
      if (pin.status === "failed") throw failure("REMOTE_PIN_FAILED", { reason: `remote service failed to pin ${id}` });
      if (pin.status === "pinned") return pin;
      await pause(POLL_EVERY_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** Lists pins in the order of the service. @throws NodeError immediately for invalid filters */
  list(client: PinningClient, query: PinFilters, signal: AbortSignal): AsyncGenerator<RemotePin, void, undefined> {
    return client.list(queryOf(query), signal);
  }

  /** Removes all matching pins; more than one only with `force`. @throws NodeError */
  async remove(
    client: PinningClient,
    query: PinFilters,
    { force, signal }: { readonly force: boolean; readonly signal: AbortSignal },
  ): Promise<void> {
    const found: RemotePin[] = [];
    const pins = client.list(queryOf(query), signal);
    try {
      for await (const pin of pins) found.push(pin);
    } catch (error) {
      throw prefixed("error while listing remote pins", error, signal);
    }
    if (found.length > 1 && !force) {
      throw failure("REMOTE_PINS_MANY");
    }
    for (const { requestId } of found) {
      await client.remove(requestId, signal).catch((error) => {
        throw prefixed(`removing pin identified by requestid=${quote(requestId)} failed`, error, signal);
      });
    }
  }

  /**
   * Resolves to the configured services by name. @param counted whether to ask each for its number
   * of pins
   */
  services(counted: boolean, signal: AbortSignal): Promise<readonly ServiceState[]> {
    const known = knownServices(this.#deps.config);
    return Promise.all(
      known.map(async ([name, { API }]) => ({
        name,
        endpoint: API.Endpoint,
        counts: counted ? await this.#counts(name, signal) : undefined,
      })),
    );
  }

  /**
   * Adds a service without testing its key. @throws NodeError for a name in use, and for a URL that
   * is not HTTP
   */
  addService(name: string, access: ServiceAccess): Promise<void> {
    return addService(this.#deps.config, name, access);
  }

  /** Removes a service; an unknown one is not an error. */
  removeService(name: string): Promise<void> {
    return removeService(this.#deps.config, name);
  }

  async #counts(name: string, signal: AbortSignal): Promise<PinCounts | "invalid"> {
    try {
      const client = this.service(name);
      const counts = pinStatuses.map(
        async (status) => [status, await client.count({ statuses: [status] }, signal)] as const,
      );
      return Object.fromEntries(await Promise.all(counts)) as PinCounts;
    } catch (error) {
      if (!(error instanceof NodeError) || signal.aborted) throw error;
      return "invalid";
    }
  }
}

function prefixed(prefix: string, error: unknown, signal: AbortSignal): unknown {
  if (!(error instanceof NodeError) || signal.aborted) return error;
  return reworded(error, `${prefix}: ${error.message}`);
}

/** Returns an empty list for a text that is not an address. */
function parsed(text: string): readonly Multiaddr[] {
  try {
    return [parseMultiaddr(text)];
  } catch {
    return [];
  }
}
