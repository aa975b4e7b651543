/** Forwards local connections over libp2p streams. */

import type { ListenerInfo, P2p } from "../network/p2p/p2p.ts";
import { parseMultiaddr } from "../network/swarm/multiaddr.ts";
import { type NamedPeer, resolvePeers } from "../network/swarm/resolve_peers.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { quote } from "../util/go/text.ts";
import { type Address, type CallOptions, callSignal } from "./common.ts";

export interface P2pForwardOptions extends CallOptions {
  /** Allow protocol names that do not begin with `/x/`. */
  readonly allowCustomProtocol?: boolean | undefined;
}

export interface P2pListenOptions extends P2pForwardOptions {
  /** Send the id of the peer first, on a line of its own. */
  readonly reportPeerId?: boolean | undefined;
}

/** Which listeners to stop: all, or those that match every given field. */
export interface P2pCloseOptions extends CallOptions {
  readonly all?: boolean | undefined;
  readonly protocol?: string | undefined;
  readonly listenAddress?: Address | undefined;
  readonly targetAddress?: Address | undefined;
}

/** A listener. Addresses are multiaddrs as text, peers are `/p2p/<id>`. */
export interface P2pListener {
  readonly protocol: string;
  readonly listenAddress: string;
  readonly targetAddress: string;
}

/** An open libp2p stream. */
export interface P2pStream {
  /** Number of the stream, for `stream.close`. */
  readonly handlerID: string;
  readonly protocol: string;
  readonly originAddress: string;
  readonly targetAddress: string;
}

export interface P2pStreamCloseOptions extends CallOptions {
  /** Close all streams. */
  readonly all?: boolean | undefined;
}

export interface P2pStreamApi {
  ls(options?: CallOptions): Promise<readonly P2pStream[]>;
  /** Resets a stream at both ends; one that does not exist is considered closed. */
  close(id?: string, options?: P2pStreamCloseOptions): Promise<void>;
}

/**
 * All methods reject with a NodeError unless `Experimental.Libp2pStreamMounting` is on, and while
 * the node is offline.
 */
export interface P2pApi {
  /** Accepts streams of a protocol from peers, and forwards them to a local address. */
  listen(protocol: string, target: Address, options?: P2pListenOptions): Promise<P2pListener>;
  /**
   * Listens on a local address, and forwards connections to a peer: `/p2p/<id>`, or an address that
   * ends in it. If the address lets the system choose the port, the result contains the chosen
   * port.
   */
  forward(protocol: string, listen: Address, target: Address, options?: P2pForwardOptions): Promise<P2pListener>;
  /**
   * Stops listeners and resolves to their number. Open streams continue.
   *
   * @throws NodeError unless an option is given
   */
  close(options?: P2pCloseOptions): Promise<number>;
  ls(options?: CallOptions): Promise<readonly P2pListener[]>;
  readonly stream: P2pStreamApi;
}

export function p2pApi(node: LowLevelNode): P2pApi {
  const opened = async (): Promise<P2p> => {
    if (!node.repo.config.value("Experimental.Libp2pStreamMounting")) {
      throw failure("P2P_OFF");
    }
    return (await node.network()).p2p;
  };
  return {
    async listen(protocol, target, { allowCustomProtocol: custom = false, reportPeerId: reportPeer = false } = {}) {
      const p2p = await opened();
      return shown(await p2p.listen(protocol, parseMultiaddr(String(target)), { custom, reportPeer }));
    },
    async forward(protocol, listen, target, { allowCustomProtocol: custom = false, ...options } = {}) {
      const p2p = await opened();
      const address = parseMultiaddr(String(listen));
      return shown(
        await p2p.forward(protocol, address, await onePeer(String(target), callSignal(options)), { custom }),
      );
    },
    async close({ all, protocol, listenAddress: listen, targetAddress: target } = {}) {
      const p2p = await opened();
      const isFiltered = protocol !== undefined || listen !== undefined || target !== undefined;
      if (all !== true && !isFiltered) throw failure("OPTION_CONFLICT", { reason: "no matching options given" });
      if (all === true && isFiltered)
        throw failure("OPTION_CONFLICT", { reason: "can't combine --all with other matching options" });
      return p2p.close({
        protocol,
        listen: listen === undefined ? undefined : parseMultiaddr(String(listen)),
        target: target === undefined ? undefined : parseMultiaddr(String(target)),
      });
    },
    async ls() {
      return (await opened()).list().map(shown);
    },
    stream: {
      async ls() {
        return (await opened()).streams().map(({ id, protocol, origin, target }) => ({
          handlerID: id.toString(),
          protocol,
          originAddress: origin,
          targetAddress: target,
        }));
      },
      async close(id, { all } = {}) {
        const p2p = await opened();
        if (all === true) return p2p.closeStreams();
        if (id === undefined) throw failure("ARGUMENT_INVALID", { reason: "no id specified" });
        p2p.closeStreams(streamId(id));
      },
    },
  };
}

const shown = ({ protocol, listen, target }: ListenerInfo): P2pListener => ({
  protocol,
  listenAddress: listen,
  targetAddress: target,
});

/** @throws NodeError for an ambiguous address */
async function onePeer(text: string, signal: AbortSignal): Promise<NamedPeer> {
  const [first, second] = await resolvePeers([text], signal);
  if (first === undefined) throw failure("ADDRESS_WITHOUT_PEERS", { address: text });
  if (second !== undefined) {
    throw failure("ADDRESS_INVALID", {
      reason: `ambiguous multiaddr ${text} could refer to ${first.id} or ${second.id}`,
    });
  }
  return first;
}

/** @throws NodeError with Go's text */
function streamId(text: string): bigint {
  const failed = (reason: string) =>
    failure("NUMBER_INVALID", { reason: `strconv.ParseUint: parsing ${quote(text)}: ${reason}` });
  if (!/^\d+$/.test(text)) throw failed("invalid syntax");
  const id = BigInt(text);
  if (id >= 2n ** 64n) throw failed("value out of range");
  return id;
}
