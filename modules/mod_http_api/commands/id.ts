/** Who the node is. */

import { type PeerId, parsePeerId, peerIdEncoder } from "../../mod_node/formats/peer_id.ts";
import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import { type Multiaddr, withPeer } from "../../mod_node/network/swarm/multiaddr.ts";
import { keyText, publicKeyText } from "../../mod_node/storage/repo/identity.ts";
import { agentVersion, protocolVersion } from "../../mod_node/util/agent_version.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { type Commands, defineCommand, value } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { orNull } from "./shapes.ts";

const offline = `'ipfs id' currently cannot query information on remote
peers without a running daemon; we are working to fix this.
In the meantime, if you want to query remote peers using 'ipfs id',
please run the daemon:

    ipfs daemon &
    ipfs id QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ
`;

const output = fields("IdOutput", {
  ID: "string",
  PublicKey: "string",
  /** Null while the node is offline, and so are the protocols. */
  Addresses: nullable(["string"]),
  AgentVersion: "string",
  ProtocolVersion: "string",
  Protocols: nullable(["string"]),
});

type Identified = ValueOf<typeof output>;

function asked(text: string): PeerId {
  try {
    return parsePeerId(text);
  } catch (error) {
    throw new NodeError("invalid peer id", { cause: error });
  }
}

type Told = Omit<Identified, "ID">;

const told = (id: PeerId, addresses: readonly Multiaddr[]): readonly string[] =>
  addresses.length === 0 ? [`/p2p/${id}`] : addresses.map((address) => withPeer(address, id).toString());

async function ownFacts(node: Node): Promise<Told> {
  const PublicKey = publicKeyText(node.repo.identity);
  const network = node.online ? await node.network() : undefined;
  const Addresses = network === undefined ? null : told(network.swarm.id, network.swarm.announcedAddresses());
  const Protocols = network === undefined ? null : network.libp2p.getProtocols().sort();
  return { PublicKey, Addresses, AgentVersion: agentVersion, ProtocolVersion: protocolVersion, Protocols };
}

/** Whatever is known of another peer, after it was asked. */
async function factsOf(node: Node, id: PeerId, signal: AbortSignal): Promise<Told> {
  if (!node.online) throw new NodeError(offline);
  const { swarm } = await node.network();
  try {
    await swarm.connect(id, [], signal);
  } catch (error) {
    const unreachable = NodeError.is(error) && error.code === "ROUTING_TABLE_EMPTY";
    throw unreachable ? new NodeError(offline, { cause: error }) : error;
  }
  const { publicKey, addresses, agentVersion, protocolVersion, protocols } = await swarm.peerInfo(id);
  return {
    PublicKey: publicKey === undefined ? "" : keyText(publicKey),
    Addresses: told(id, addresses),
    AgentVersion: agentVersion,
    ProtocolVersion: protocolVersion,
    Protocols: orNull(protocols),
  };
}

/** Replaces what stands for the fields, then `\n` and `\t`. */
function formatted(format: string, id: Identified): string {
  const parts: Readonly<Record<string, string>> = {
    "<id>": id.ID,
    "<aver>": id.AgentVersion,
    "<pver>": id.ProtocolVersion,
    "<pubkey>": id.PublicKey,
    "<addrs>": (id.Addresses ?? []).join("\n"),
    "<protocols>": (id.Protocols ?? []).join("\n"),
    "\\n": "\n",
    "\\t": "\t",
  };
  return Object.entries(parts).reduce((text, [mark, part]) => text.replaceAll(mark, () => part), format);
}

export const commands = {
  id: defineCommand({
    help: "Tells the id, key, addresses and protocols of the node or of another peer.",
    arguments: [{ name: "peerid", help: "Id of another peer." }],
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        help: "Text with <id>, <aver>, <pver>, <pubkey>, <addrs> and <protocols> in it; of effect with `encoding=text`.",
      },
      "peerid-base": {
        type: "string",
        default: "b58mh",
        help: "Encoding of the id: `b58mh`, or the multibase of a CID.",
      },
    },
    returns: value(output),
    async run({ arguments: { peerid }, options, lowLevel: node, signal }) {
      const encode = peerIdEncoder(options["peerid-base"]);
      const own = node.repo.identity.peerId;
      const id = peerid === undefined ? own : asked(peerid);
      const facts = await (id.equals(own) ? ownFacts(node) : factsOf(node, id, signal));
      return { ID: encode(id), ...facts };
    },
    text: (id, { options: { format } }) =>
      format === undefined ? `${JSON.stringify(id, undefined, "\t")}\n\n` : formatted(format, id),
  }),
} satisfies Commands;
