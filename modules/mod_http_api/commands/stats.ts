/** `stats`: statistics. */
import { formatDuration, type StatsDhtBucket, type StatsDhtPeer } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import { type Commands, defineGroup, readCommand, stream } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { stat } from "./bitswap.ts";
import { orNull, wireNames } from "./shapes.ts";

const peer = fields("dhtPeerInfo", {
  ID: "string",
  Connected: "bool",
  AgentVersion: "string",
  LastUsefulAt: "string",
  LastQueriedAt: "string",
});

const bucket = fields("dhtBucket", { LastRefresh: "string", Peers: nullable([peer]) });
const table = fields("dhtStat", { Name: "string", Buckets: [bucket] });

type ShownTable = ValueOf<typeof table>;

/** Formats local time as RFC 3339, to the second. Returns "" for a time that was never set. */
function timeText(time: Date | undefined): string {
  if (time === undefined) return "";
  const offset = -time.getTimezoneOffset();
  const local = new Date(time.getTime() + offset * 60_000).toISOString().slice(0, 19);
  if (offset === 0) return `${local}Z`;
  const two = (number: number) => String(Math.floor(Math.abs(number))).padStart(2, "0");
  return `${local}${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
}

const shownPeer = ({ id, connected, agentVersion, lastUsefulAt, lastQueriedAt }: StatsDhtPeer) => ({
  ID: String(id),
  Connected: connected,
  AgentVersion: agentVersion,
  LastUsefulAt: timeText(lastUsefulAt),
  LastQueriedAt: timeText(lastQueriedAt),
});

const shownBucket = ({ lastRefresh, peers }: StatsDhtBucket) => ({
  LastRefresh: timeText(lastRefresh),
  Peers: orNull(peers.map(shownPeer)),
});

/** Formats the time that has passed since a date, rounded to seconds. */
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

export const commands = {
  stats: defineGroup({ help: "Show statistics of the node." }),
  "stats/bitswap": stat,
  "stats/bw": readCommand({
    help: "Shows the bandwidth used.",
    options: {
      peer: { type: "string", aliases: ["p"], help: "Only traffic with this peer." },
      proto: { type: "string", aliases: ["t"], help: "Only this protocol." },
      poll: { type: "bool", help: "Report continuously." },
      interval: {
        type: "string",
        aliases: ["i"],
        default: "1s",
        help: 'Interval with `poll`, such as "300s", "1.5h" or "2h45m".',
      },
    },
    endless: true,
    returns: stream(fields("Stats", { TotalIn: "int64", TotalOut: "int64", RateIn: "float64", RateOut: "float64" })),
    async *run({ node, options, signal }) {
      for await (const moved of node.stats.bw({ ...options, signal })) {
        yield wireNames({ ...moved, totalIn: Number(moved.totalIn), totalOut: Number(moved.totalOut) });
      }
    },
  }),
  "stats/dht": readCommand({
    help: "Lists the tables of the routing system.",
    arguments: [
      {
        name: "dht",
        variadic: true,
        help: "The tables: `wanserver`, `lanserver`, `wan`, `lan`; by default `wan` and `lan`.",
      },
    ],
    returns: stream(table),
    async *run({ node, arguments: { dht }, signal }) {
      for await (const { name, buckets } of node.stats.dht(dht.length === 0 ? undefined : dht, { signal })) {
        yield { Name: name, Buckets: buckets.map(shownBucket) };
      }
    },
    text: (shown) => columns([...rowsOf(shown)], 4, 2),
  }),
  "stats/provide": readCommand({
    help: "Shows statistics of announcements to the routing system.",
    needs: "Experimental.AcceleratedDHTClient",
    returns: stream(
      fields("provideStats", {
        TotalProvides: "int",
        LastReprovideBatchSize: "int",
        AvgProvideDuration: "duration",
        LastReprovideDuration: "duration",
      }),
    ),
    async *run({ node, signal }) {
      const { avgProvideDuration, lastReprovideDuration, ...counted } = await node.stats.provide({ signal });
      yield {
        ...wireNames(counted),
        AvgProvideDuration: Math.round(avgProvideDuration * 1e6),
        LastReprovideDuration: Math.round(lastReprovideDuration * 1e6),
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
  }),
} satisfies Commands;
