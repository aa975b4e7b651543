/** Operations for the exchange of blocks with peers. */
import type { BitswapState, Ledger } from "../types.ts";
import { type Deps, nodeOperation } from "./operation.ts";

const MAX_WANTS = 1000;
const MAX_LEDGERS = 200;

export const bitswapOperations = [
  nodeOperation({
    name: "node_bitswap",
    method: "GET",
    path: "/node/bitswap",
    scope: "read",
    help: "Blocks exchanged with peers: counts, the wanted blocks, and the ledger of each peer",
    response: "BitswapState",
    run: ({ node }) => stateOf(node),
  }),
];

const nothing: BitswapState = {
  online: false,
  blocks_received: 0,
  blocks_sent: 0,
  data_received: 0,
  data_sent: 0,
  duplicate_blocks: 0,
  duplicate_data: 0,
  provide_queue: 0,
  wants: 0,
  wantlist: [],
  partners: 0,
  ledgers: [],
};

async function stateOf({ lowLevel, bitswap }: Deps["node"]): Promise<BitswapState> {
  if (!lowLevel.online) return nothing;
  const stat = await bitswap.stat();
  const ledgers = await Promise.all(
    stat.peers.map(async (id): Promise<Ledger> => {
      const { peer, value, sent, recv, exchanged } = await bitswap.ledger(id);
      const counts = { sent: Number(sent), received: Number(recv), exchanged: Number(exchanged) };
      return { peer: peer.toString(), debt: value, ...counts };
    }),
  );
  return {
    online: true,
    blocks_received: Number(stat.blocksReceived),
    blocks_sent: Number(stat.blocksSent),
    data_received: Number(stat.dataReceived),
    data_sent: Number(stat.dataSent),
    duplicate_blocks: Number(stat.dupBlksReceived),
    duplicate_data: Number(stat.dupDataReceived),
    provide_queue: stat.provideBufLen,
    wants: stat.wantlist.length,
    wantlist: stat.wantlist.slice(0, MAX_WANTS).map(String),
    partners: stat.peers.length,
    ledgers: ledgers.sort((a, b) => b.exchanged - a.exchanged).slice(0, MAX_LEDGERS),
  };
}
