/**
 * Announcements to the routing system: their statistics, the queue of new content, and announcing
 * single CIDs on request.
 */
import type { CID } from "multiformats/cid";
import { walk } from "../content/dag/walk.ts";
import { parsePath } from "../content/resolver/path.ts";
import { CidSet } from "../formats/cid/set.ts";
import { parseCid } from "../formats/cid/text.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure, NodeError } from "../util/errors.ts";
import { quote } from "../util/go/text.ts";
import { type CallOptions, callSignal, listOf } from "./common.ts";
import { requireBlocks } from "./dht.ts";
import { type LegacyProvideStats, legacyStats, type SweepProvideStats, sweepStats } from "./provide_stat.ts";

export type { LegacyProvideStats, SweepProvideStats } from "./provide_stat.ts";

export interface ProvideStatOptions extends CallOptions {
  /** Has no effect: all statistics are always returned. */
  readonly all?: boolean | undefined;
  /**
   * Return the statistics of announcements to the local network. This node announces to both
   * networks in one sweep, so the statistics are the same for both. The call fails with a NodeError
   * if blocks are announced one by one.
   */
  readonly lan?: boolean | undefined;
}

/**
 * Announcements are made by region (`Sweep`) or block by block (`Legacy`); the other field is null.
 */
export interface ProvideStats {
  readonly Sweep: SweepProvideStats | null;
  readonly Legacy: LegacyProvideStats | null;
  /** Always false: this node does not keep a routing table of the whole network. */
  readonly FullRT: boolean;
}

export interface ProvideOnceOptions extends CallOptions {
  /** Also announce everything below the blocks. */
  readonly recursive?: boolean | undefined;
}

export interface ProvideApi {
  /** @throws NodeError while the node is offline, and if announcing is off */
  stat(options?: ProvideStatOptions): Promise<ProvideStats>;
  /**
   * Clears the queue of CIDs to announce for the first time, and resolves to their number. CIDs
   * that are announced repeatedly are not affected.
   */
  clear(): Promise<number>;
  /**
   * Announces locally stored blocks once, in the background; they are not added to the regular
   * announcements. Yields the CIDs that were queued.
   *
   * @throws NodeError while the node is offline, if announcing is off, without peers, and for a
   * block that is not stored locally
   */
  once(cids: CID | string | readonly (CID | string)[], options?: ProvideOnceOptions): AsyncIterable<CID>;
  /**
   * Announces everything now.
   *
   * @throws NodeError while the node is offline, if announcing is off, and if announcements are
   * made by region, because those follow a schedule
   */
  reprovide(options?: CallOptions): Promise<void>;
}

export function provideApi(node: LowLevelNode): ProvideApi {
  const opened = async () => (await node.network()).routing.providing;
  return {
    async stat({ lan } = {}) {
      const providing = await opened();
      const { sweeper } = providing;
      if (lan === true && sweeper === undefined) {
        throw failure("FEATURE_OFF", { reason: "LAN stats only available for Sweep provider with Dual DHT" });
      }
      if (providing.isOff)
        throw new NodeError("PROVIDE_OFF", "stats not available with current routing system *node.NoopProvider");
      return {
        Sweep: sweeper === undefined ? null : sweepStats(sweeper, providing.waiting()),
        Legacy: sweeper === undefined ? legacyStats(providing.stat, providing.interval) : null,
        FullRT: false,
      };
    },
    async clear() {
      return node.online ? (await opened()).clear() : 0;
    },
    async *once(given, { recursive, ...options } = {}) {
      const signal = callSignal(options);
      const { routing, libp2p } = await node.network();
      if (routing.providing.isOff) throw new NodeError("PROVIDE_OFF", "cannot provide: Provide.Enabled is false");
      if (libp2p.getPeers().length === 0)
        throw failure("NO_CONNECTED_PEERS", { reason: "cannot provide: no connected peers" });
      const seen = new CidSet();
      for (const each of listOf(given)) {
        const root = typeof each === "string" ? rootOf(each) : each;
        await requireBlocks(node, [root]);
        for await (const cid of recursive === true ? below(node, root, seen, signal) : only(root, seen)) {
          await routing.providing.provideOnce(cid, signal);
          yield cid;
        }
      }
    },
    async reprovide(options = {}) {
      await (await opened()).reprovideOnCommand(callSignal(options));
    },
  };
}

/** Parses a CID, or a path that consists of a CID only. @throws NodeError */
function rootOf(text: string): CID {
  const shown = quote(text);
  let path: ReturnType<typeof parsePath>;
  try {
    path = parsePath(text);
    if (path.namespace === "ipns") throw failure("ARGUMENT_INVALID", { reason: `${shown} is a name` });
  } catch (cause) {
    throw failure("PROVIDED_CID_INVALID", { text: shown, reason: (cause as Error).message }, cause);
  }
  if (path.segments.length > 0) {
    const reason = `${shown} points below a root CID, expected a single CID`;
    throw failure("PROVIDED_CID_INVALID", { text: shown, reason }, failure("ARGUMENT_INVALID", { reason }));
  }
  return parseCid(path.root);
}

async function* only(root: CID, seen: CidSet): AsyncGenerator<CID> {
  if (seen.add(root)) yield root;
}

async function* below(node: LowLevelNode, root: CID, seen: CidSet, signal: AbortSignal): AsyncGenerator<CID> {
  const read = node.reader({ signal });
  for await (const { cid } of walk(root, { read, seen, signal, skipLeaves: true })) yield cid;
}
