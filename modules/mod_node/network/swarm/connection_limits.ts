/**
 * Limits the number of connections (`Swarm.ConnMgr`), and decides which ones are closed when there
 * are too many.
 */
import type { Connection, Libp2p } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { failure } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import { quote } from "../../util/go/text.ts";
import { parseSize } from "../../util/size.ts";

export interface ConnectionLimits {
  /** Number of connections that remain after trimming. */
  readonly low: number;
  /** Number of connections above which they are trimmed. */
  readonly high: number;
  /** Milliseconds for which a new connection is not trimmed. */
  readonly graceMs: number;
}

/** The defaults of go-ipfs 0.9. */
const DEFAULT_LIMITS: ConnectionLimits = { low: 600, high: 900, graceMs: 20_000 };

/**
 * Returns undefined if there is no limit. @throws NodeError for an unknown type or an invalid
 * duration
 */
export function connectionLimits(config: Pick<ConfigFile, "value">): ConnectionLimits | undefined {
  const type = config.value("Swarm.ConnMgr.Type");
  if (type === "none") return undefined;
  if (type === "") return DEFAULT_LIMITS;
  if (type !== "basic") throw failure("CONFIG_INVALID", { reason: `unrecognized ConnMgr.Type: ${quote(type)}` });
  const low = config.value("Swarm.ConnMgr.LowWater");
  const high = config.value("Swarm.ConnMgr.HighWater");
  try {
    return { low, high, graceMs: parseDuration(config.value("Swarm.ConnMgr.GracePeriod")) };
  } catch (error) {
    throw failure(
      "CONFIG_INVALID",
      { reason: `parsing Swarm.ConnMgr.GracePeriod: ${(error as Error).message}` },
      error,
    );
  }
}

/** Limits of all connections together (`Swarm.ResourceMgr`); undefined fields are not limited. */
export interface ResourceLimits {
  /** Maximum number of bytes that connections may use. */
  readonly memory: number | undefined;
  readonly descriptors: number | undefined;
}

/** Returns undefined if the limits are disabled. @throws NodeError for an invalid size */
export function resourceLimits(config: Pick<ConfigFile, "value">): ResourceLimits | undefined {
  if (config.value("Swarm.ResourceMgr.Enabled") === false) return undefined;
  const size = config.value("Swarm.ResourceMgr.MaxMemory");
  try {
    return {
      memory: size == null || size === "" ? undefined : parseSize(size),
      descriptors: config.value("Swarm.ResourceMgr.MaxFileDescriptors") || undefined,
    };
  } catch (error) {
    throw failure(
      "CONFIG_INVALID",
      { reason: `parsing Swarm.ResourceMgr.MaxMemory: ${(error as Error).message}` },
      error,
    );
  }
}

/** Connections above this multiple of `Swarm.ConnMgr.HighWater` are refused immediately. */
const MAX_CONNECTIONS_FACTOR = 4;
/** Memory that allows one connection, as in Kubo. */
const BYTES_PER_CONNECTION = 1024 * 1024;

/** Returns the maximum number of connections: the lowest of the limits, but at least one. */
export function maxConnections({ high }: Partial<ConnectionLimits> = {}, resources?: ResourceLimits): number {
  const { memory, descriptors } = resources ?? {};
  const byCount = high === undefined ? undefined : high * MAX_CONNECTIONS_FACTOR;
  const byMemory = memory === undefined ? undefined : Math.floor(memory / BYTES_PER_CONNECTION);
  const bounds = [byCount, byMemory, descriptors].filter((bound) => bound !== undefined);
  return Math.max(1, Math.min(Number.MAX_SAFE_INTEGER, ...bounds));
}

type Host = Pick<Libp2p, "getConnections" | "peerStore" | "addEventListener" | "removeEventListener">;

/**
 * Closes connections when there are too many: those to the peers with the lowest tag values first.
 */
export class ConnectionTrimmer {
  readonly #host: Host;
  readonly #limits: ConnectionLimits;
  readonly #isProtected: (peer: PeerId) => boolean;
  #running = false;

  constructor(host: Host, limits: ConnectionLimits, isProtected: (peer: PeerId) => boolean) {
    this.#host = host;
    this.#limits = limits;
    this.#isProtected = isProtected;
  }

  start(): void {
    this.#host.addEventListener("connection:open", this.#opened);
  }

  stop(): void {
    this.#host.removeEventListener("connection:open", this.#opened);
  }

  readonly #opened = (): void => this.trimIfNeeded();

  /** Closes connections now if there are too many, except for new and protected ones. */
  trimIfNeeded(): void {
    if (this.#running || this.#host.getConnections().length <= this.#limits.high) return;
    this.#running = true;
    void this.#trim().finally(() => {
      this.#running = false;
    });
  }

  async #trim(): Promise<void> {
    const { low, graceMs } = this.#limits;
    const all = this.#host.getConnections();
    const newest = Date.now() - graceMs;
    const old = all.filter(({ timeline, remotePeer }) => timeline.open < newest && !this.#isProtected(remotePeer));
    const valued = await Promise.all(
      old.map(async (connection) => ({ connection, value: await this.#valueOf(connection) })),
    );
    valued.sort((a, b) => a.value - b.value || a.connection.streams.length - b.connection.streams.length);
    const closing = valued.slice(0, Math.max(all.length - low, 0)).map(({ connection }) => connection);
    await Promise.all(closing.map((connection) => connection.close().catch((error: Error) => connection.abort(error))));
  }

  /** Resolves to the sum of the tag values that protocols and users gave to a peer. */
  async #valueOf({ remotePeer }: Connection): Promise<number> {
    const peer = await this.#host.peerStore.get(remotePeer).catch(() => undefined);
    return [...(peer?.tags.values() ?? [])].reduce((sum, { value }) => sum + value, 0);
  }
}
