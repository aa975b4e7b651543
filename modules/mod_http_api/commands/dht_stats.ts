/** Figures of the routing system. */

import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import type { Bucket, BucketEntry } from "../../mod_node/network/kad/dht.ts";
import type { Network } from "../../mod_node/network/network.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { formatDuration } from "../../mod_node/util/go/duration.ts";
import { columns } from "../rpc/columns.ts";
import { defineCommand, stream } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { orNull } from "./shapes.ts";

const peer = fields("dhtPeerInfo", {
  ID: "string",
  Connected: "bool",
  AgentVersion: "string",
  LastUsefulAt: "string",
  LastQueriedAt: "string",
});

const bucket = fields("dhtBucket", { LastRefresh: "string", Peers: nullable([peer]) });
const table = fields("dhtStat", { Name: "string", Buckets: [bucket] });

type ShownPeer = ValueOf<typeof peer>;
type ShownBucket = ValueOf<typeof bucket>;
type ShownTable = ValueOf<typeof table>;

/** RFC 3339 to the second, where this machine is; empty when it never was. */
function timeText(time: Date | undefined): string {
  if (time === undefined) return "";
  const offset = -time.getTimezoneOffset();
  const local = new Date(time.getTime() + offset * 60_000).toISOString().slice(0, 19);
  if (offset === 0) return `${local}Z`;
  const two = (number: number) => String(Math.floor(Math.abs(number))).padStart(2, "0");
  return `${local}${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
}

async function shownPeer({ swarm }: Network, { id, connected, useful, queried }: BucketEntry): Promise<ShownPeer> {
  const { agentVersion } = await swarm.peerInfo(id);
  return {
    ID: id.toString(),
    Connected: connected,
    AgentVersion: agentVersion,
    LastUsefulAt: timeText(useful),
    LastQueriedAt: timeText(queried),
  };
}

async function shownBucket(network: Network, { refreshed, peers }: Bucket): Promise<ShownBucket> {
  const shown = await Promise.all(peers.map((entry) => shownPeer(network, entry)));
  return { LastRefresh: timeText(refreshed), Peers: orNull(shown) };
}

/** The client that announces in batches knows all peers as one. */
async function allAsOne(network: Network, buckets: readonly Bucket[]): Promise<readonly ShownBucket[]> {
  const peers = buckets
    .flatMap((bucket) => bucket.peers)
    .map((entry) => ({ ...entry, useful: undefined, queried: undefined }));
  return [await shownBucket(network, { refreshed: undefined, peers })];
}

const isAccelerated = ({ repo }: Node): boolean => repo.config.value("Experimental.AcceleratedDHTClient");

async function* tables(node: Node, names: readonly string[]): AsyncGenerator<ShownTable> {
  const network = await node.network();
  const { dht: both } = network.routing;
  if (both === undefined) throw new NodeError("routing service is not a DHT");
  for (const name of names) {
    const client = name === "wan" || name === "lan";
    const found = { wan: both.wan, wanserver: both.wan, lan: both.lan, lanserver: both.lan }[name];
    if (found === undefined) throw new NodeError(`unknown dht type: ${name}`, { kind: "client" });
    if (client && isAccelerated(node)) {
      if (name === "lan") throw new NodeError("no LAN client found", { kind: "client" });
      yield { Name: name, Buckets: await allAsOne(network, found.buckets()) };
    } else {
      const buckets = found.buckets().map((bucket) => shownBucket(network, bucket));
      yield { Name: name, Buckets: await Promise.all(buckets) };
    }
  }
}

/** To the second. */
function since(text: string): string {
  if (text === "") return "never";
  return `${formatDuration(Math.round((Date.now() - Date.parse(text)) / 1000) * 1000)} ago`;
}

function* rowsOf({ Name, Buckets }: ShownTable): Generator<readonly string[]> {
  const alone = (text: string) => [text, "", "", ""];
  const count = Buckets.reduce((sum, { Peers }) => sum + (Peers?.length ?? 0), 0);
  yield alone(`DHT ${Name} (${count} peers):`);
  for (const [at, { LastRefresh, Peers }] of Buckets.entries()) {
    const refreshed = since(LastRefresh);
    yield alone(`  Bucket ${String(at).padStart(2)} (${Peers?.length ?? 0} peers) - refreshed ${refreshed}:`);
    yield ["    Peer", "last useful", "last queried", "Agent Version"];
    for (const { ID, Connected, LastUsefulAt, LastQueriedAt, AgentVersion } of Peers ?? []) {
      yield [`  ${Connected ? "@" : " "} ${ID}`, since(LastUsefulAt), since(LastQueriedAt), AgentVersion];
    }
    yield alone("");
  }
}

export const routingTables = defineCommand({
  help: "Lists the tables of the routing system.",
  arguments: [
    {
      name: "dht",
      variadic: true,
      help: "The tables: `wanserver`, `lanserver`, `wan`, `lan`; by default `wan` and `lan`.",
    },
  ],
  returns: stream(table),
  run: ({ lowLevel: node, arguments: { dht } }) => tables(node, dht.length === 0 ? ["wan", "lan"] : dht),
  text: (shown) => columns([...rowsOf(shown)], 4, 2),
});

export const announcing = defineCommand({
  help: "Tells how announcing to the routing system goes.",
  needs: "Experimental.AcceleratedDHTClient",
  returns: stream(
    fields("provideStats", {
      TotalProvides: "int",
      LastReprovideBatchSize: "int",
      AvgProvideDuration: "duration",
      LastReprovideDuration: "duration",
    }),
  ),
  async *run({ lowLevel: node }) {
    const { routing } = await node.network();
    if (!isAccelerated(node)) {
      throw new NodeError("can only return stats if Experimental.AcceleratedDHTClient is enabled");
    }
    const { total, averageMs, lastReprovide } = routing.provideStat;
    yield {
      TotalProvides: total,
      LastReprovideBatchSize: lastReprovide.provided,
      AvgProvideDuration: Math.round(averageMs * 1e6),
      LastReprovideDuration: Math.round(lastReprovide.durationMs * 1e6),
    };
  },
  text: (stat) =>
    columns(
      [
        ["TotalProvides:", String(stat.TotalProvides)],
        ["AvgProvideDuration:", formatDuration(stat.AvgProvideDuration / 1e6)],
        ["LastReprovideDuration:", formatDuration(stat.LastReprovideDuration / 1e6)],
        ["LastReprovideBatchSize:", String(stat.LastReprovideBatchSize)],
      ],
      4,
    ),
});
