/**
 * Runs the parts that dial and close connections automatically, and applies configuration changes
 * to them.
 */
import type { Libp2p } from "@libp2p/interface";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";
import type { NodeLog } from "../../util/log.ts";
import type { AddedPeers } from "./added_peers.ts";
import { bootstrapAddresses } from "./bootstrap_list.ts";
import { Bootstrapper } from "./bootstrapper.ts";
import { ConnectionTrimmer, connectionLimits } from "./connection_limits.ts";
import { type Multiaddr, parseMultiaddr, transportOf } from "./multiaddr.ts";
import type { PeerToDial } from "./peer_dialer.ts";
import { Peering } from "./peering.ts";

export interface KeepersDeps {
  readonly libp2p: Libp2p;
  readonly config: Pick<ConfigFile, "value" | "update">;
  /** Peers to which connections are maintained in addition to `Peering.Peers`. */
  readonly added: AddedPeers;
  readonly log: NodeLog;
  /** Finds the addresses of a peer with the routing system. */
  readonly find: (id: PeerId, signal: AbortSignal) => Promise<readonly Multiaddr[]>;
}

interface Keeper {
  start(): void;
  stop(): void;
}

export class Keepers {
  readonly #deps: KeepersDeps;
  #peering: Peering;
  #bootstrapper: Bootstrapper;
  #trimmer: ConnectionTrimmer | undefined;
  #isRunning = false;

  /** @throws NodeError for an invalid configuration */
  constructor(deps: KeepersDeps) {
    this.#deps = deps;
    this.#peering = this.#makePeering();
    this.#bootstrapper = this.#makeBootstrapper();
    this.#trimmer = this.#makeTrimmer();
  }

  start(): void {
    this.#isRunning = true;
    for (const keeper of this.#all()) keeper.start();
  }

  stop(): void {
    this.#isRunning = false;
    for (const keeper of this.#all()) keeper.stop();
  }

  /** The configured and added peers to which connections are maintained. */
  get peered(): readonly PeerToDial[] {
    return this.#peering.peers();
  }

  /** Maintains connections to further peers, also after a restart; they are dialled at once. */
  async addPeered(peers: readonly PeerToDial[]): Promise<void> {
    await this.#deps.added.add(peers);
    for (const peer of peers) this.#peering.add(peer);
  }

  /**
   * Stops maintaining connections to peers; open connections stay open. Configured peers return
   * when that setting changes, and after a restart.
   */
  async removePeered(ids: readonly PeerId[]): Promise<void> {
    await this.#deps.added.remove(ids);
    for (const id of ids) this.#peering.remove(id);
  }

  /**
   * Applies the current value of `Peering.Peers`; open connections stay open. @throws NodeError for
   * an invalid entry
   */
  renewPeering(): void {
    this.#peering = this.#renewed(this.#peering, this.#makePeering());
  }

  /**
   * Applies the current value of `Bootstrap`, and dials if there are too few peers. @throws
   * NodeError for an invalid entry
   */
  renewBootstrap(): void {
    this.#bootstrapper = this.#renewed(this.#bootstrapper, this.#makeBootstrapper());
  }

  /**
   * Applies the current value of `Swarm.ConnMgr`, and closes connections if there are too many.
   * @throws NodeError
   */
  renewLimits(): void {
    this.#trimmer = this.#renewed(this.#trimmer, this.#makeTrimmer());
    this.#trimmer?.trimIfNeeded();
  }

  #renewed<K extends Keeper | undefined>(previous: Keeper | undefined, next: K): K {
    previous?.stop();
    if (this.#isRunning) next?.start();
    return next;
  }

  #all(): readonly Keeper[] {
    return [this.#peering, this.#bootstrapper, ...(this.#trimmer === undefined ? [] : [this.#trimmer])];
  }

  #makePeering(): Peering {
    const { libp2p, config, added, log, find } = this.#deps;
    const configured = (config.value("Peering.Peers") ?? []).map(({ ID, Addrs }) => ({
      id: parsePeerId(ID),
      addresses: Addrs.map((text) => transportOf(parseMultiaddr(text))),
    }));
    // The addresses of added peers override those of configured peers.
    return new Peering(libp2p, [...configured, ...added.all()], log, { find });
  }

  #makeBootstrapper(): Bootstrapper {
    const { libp2p, config, log } = this.#deps;
    return new Bootstrapper(libp2p, bootstrapAddresses(config), log);
  }

  #makeTrimmer(): ConnectionTrimmer | undefined {
    const { libp2p, config } = this.#deps;
    const limits = connectionLimits(config);
    return limits && new ConnectionTrimmer(libp2p, limits, (id) => this.#peering.protects(id));
  }
}
