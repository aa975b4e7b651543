/** Bitswap, the block exchange. */
import { type Node, parsePeerId, sizeText } from "modhost/node";
import { type AnyCall, type Commands, defineGroup, nothing, readCommand, value, writeCommand } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { human, orNull, texts, verbose, wireNames } from "./shapes.ts";

/** Capacity of go-ipfs's provide queue; the text output shows it. */
const MAX_PROVIDES = 256;

const counts = {
  Wantlist: ["link"],
  Peers: ["string"],
  BlocksReceived: "uint64",
  DataReceived: "uint64",
  BlocksSent: "uint64",
  DataSent: "uint64",
  DupBlksReceived: "uint64",
  DupDataReceived: "uint64",
  MessagesReceived: "uint64",
} as const;
const counted = fields("Stat", counts);

const about = {
  help: "Shows statistics and the wantlist of the block exchange.",
  options: { verbose: verbose("Also print the peers."), human },
} as const;

async function counters(node: Node) {
  const stat = await node.bitswap.stat({ details: true });
  const { peers, messagesReceived = 0n } = stat;
  return wireNames({ ...stat, peers: texts(peers), messagesReceived });
}

/** @param buffer the line about the provide queue, at the level that has one */
function statText(
  stat: ValueOf<typeof counted>,
  call: Pick<AnyCall, "cidText"> & {
    readonly options: { readonly human: boolean | undefined; readonly verbose: boolean | undefined };
  },
  ...buffer: string[]
): string {
  const size = call.options.human === true ? sizeText : String;
  const cidText = call.cidText();
  const lines = [
    "bitswap status",
    ...buffer,
    `\tblocks received: ${stat.BlocksReceived}`,
    `\tblocks sent: ${stat.BlocksSent}`,
    `\tdata received: ${size(stat.DataReceived)}`,
    `\tdata sent: ${size(stat.DataSent)}`,
    `\tdup blocks received: ${stat.DupBlksReceived}`,
    `\tdup data received: ${size(stat.DupDataReceived)}`,
    `\twantlist [${stat.Wantlist.length} keys]`,
    ...stat.Wantlist.map((cid) => `\t\t${cidText(cid)}`),
    `\tpartners [${stat.Peers.length}]`,
    ...(call.options.verbose === true ? stat.Peers.map((peer) => `\t\t${peer}`) : []),
  ];
  return `${lines.join("\n")}\n`;
}

export const stat = readCommand({
  ...about,
  returns: value(fields("Stat", { ProvideBufLen: "int", ...counts })),
  run: ({ node }) => counters(node),
  text: (stat, call) => statText(stat, call, `\tprovides buffer: ${stat.ProvideBufLen} / ${MAX_PROVIDES}`),
});

const statKubo043 = readCommand({
  ...about,
  returns: value(counted),
  async run({ node }) {
    const { ProvideBufLen: _, ...others } = await counters(node);
    return others;
  },
  text: (stat, call) => statText(stat, call),
});

export const kubo043 = {
  "bitswap/stat": statKubo043,
  "stats/bitswap": statKubo043,
  "bitswap/reprovide": writeCommand({
    help: "Announces the stored blocks to the routing system again, unless they are announced by region.",
    returns: nothing,
    run: ({ node, signal }) => node.provide.reprovide({ signal }),
  }),
} satisfies Commands;

export const commands = {
  bitswap: defineGroup({ help: "Inspect the block exchange (bitswap)." }),
  "bitswap/ledger": readCommand({
    help: "Shows what was exchanged with a peer.",
    arguments: [{ name: "peer", required: true, help: "The peer's ID, in base58." }],
    returns: value(
      fields("Receipt", { Peer: "string", Value: "float64", Sent: "uint64", Recv: "uint64", Exchanged: "uint64" }),
    ),
    async run({ arguments: { peer: given }, node }) {
      const ledger = await node.bitswap.ledger(given);
      return wireNames({ ...ledger, peer: String(ledger.peer) });
    },
    text: ({ Peer, Value, Sent, Recv, Exchanged }) =>
      `Ledger for ${Peer}\nDebt ratio:\t${Value.toFixed(6)}\nExchanges:\t${Exchanged}\n` +
      `Bytes sent:\t${Sent}\nBytes received:\t${Recv}\n\n`,
  }),
  "bitswap/reprovide": writeCommand({
    help: "Announces the stored blocks to the routing system again.",
    returns: nothing,
    run: ({ node, signal }) => node.bitswap.reprovide({ signal }),
  }),
  "bitswap/stat": stat,
  "bitswap/wantlist": readCommand({
    help: "Lists the wanted blocks.",
    options: {
      peer: { type: "string", aliases: ["p"], help: "The peer whose wantlist is shown; by default this node's own." },
    },
    returns: value(fields("KeyList", { Keys: nullable(["link"]) })),
    async run({ options: { peer }, node }) {
      if (peer === undefined) return { Keys: await node.bitswap.wantlist() };
      const keys = await node.bitswap.wantlistForPeer(peer);
      const isOwn = parsePeerId(peer).equals((await node.id()).id);
      return { Keys: isOwn ? keys : orNull(keys) };
    },
    text(list, call) {
      const cidText = call.cidText();
      return (list.Keys ?? []).map((cid) => `${cidText(cid)}\n`).join("");
    },
  }),
} satisfies Commands;
