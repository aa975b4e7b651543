/**
 * Scenes that two nodes play with each other through their RPC alone. Scenes of names and messages
 * are in `words.ts`.
 */
import { digestOf, keystream } from "#test/support/content.ts";
import { type Report, untilRight } from "./report.ts";
import type { Files, Rpc } from "./rpc.ts";

const mebibyte = 2 ** 20;

interface PingLine {
  readonly Success: boolean;
  readonly Time: number;
  readonly Text: string;
}

interface RoutingEvent {
  readonly Type: number;
  readonly Responses: readonly { readonly ID: string; readonly Addrs: readonly string[] }[] | null;
}

interface Ledger {
  readonly Sent: number;
  readonly Recv: number;
  readonly Exchanged: number;
}

interface Bandwidth {
  readonly TotalIn: number;
  readonly TotalOut: number;
}

/** `one` dials the other; both list the connection. */
export async function connects(report: Report, one: Rpc, other: Rpc): Promise<void> {
  const { Strings } = await one.one<{ Strings: string[] }>("swarm/connect", { arg: other.address });
  // js-ipfs prints the address, which ends with the id.
  const said = /^connect (\S*\/)?(\w+) success$/.exec(Strings.join());
  report.holds(`${one.name} connects to ${other.name}`, Strings, "success", said?.[2] === other.id);
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    const peers = await untilRight(
      () => peersOf(here),
      (ids) => ids.includes(there.id),
    );
    report.holds(`peers of ${here.name}`, peers, `with ${there.name}, ${there.id}`, peers.includes(there.id));
  }
}

export async function peersOf(node: Rpc): Promise<readonly string[]> {
  const { Peers } = await node.one<{ Peers: { Peer: string }[] | null }>("swarm/peers");
  return (Peers ?? []).map(({ Peer }) => Peer);
}

/** Checks that `one` knows the same of the other as the other reports of itself. */
export async function identifies(report: Report, one: Rpc, other: Rpc): Promise<void> {
  const known = await one.one<Rpc["identity"]>("id", { arg: other.id });
  const own = other.identity;
  // A later node leaves out the last slash of its own agent version if it has no commit.
  const agent = known.AgentVersion.replace(/\/$/, "");
  report.same(`agent of ${other.name} as ${one.name} knows it`, agent, own.AgentVersion.replace(/\/$/, ""));
  report.same("its protocol version", known.ProtocolVersion ?? "", own.ProtocolVersion ?? "");
  report.holds("its addresses", known.Addresses, `with ${other.address}`, known.Addresses.includes(other.address));
  report.holds(
    "its protocols",
    known.Protocols,
    "with bitswap and ping",
    ["/ipfs/bitswap/1.2.0", "/ipfs/ping/1.0.0"].every((protocol) => known.Protocols.includes(protocol)),
  );
}

/** Checks that the lines of `ping` arrive as a stream, with the texts of the reference. */
export async function pings(report: Report, one: Rpc, other: Rpc, count = 3): Promise<void> {
  const lines = await one.all<PingLine>("ping", { arg: other.id, count: String(count) });
  const echoes = lines.filter(({ Success, Time }) => Success && Time > 0);
  report.holds(`${one.name} pings ${other.name}`, lines, `${count} echoes`, echoes.length === count);
  const average = lines.at(-1)?.Text ?? "";
  report.holds("the last line", average, "Average latency: …ms", /^Average latency: \d+(\.\d+)?ms$/.test(average));
}

/**
 * Adds a file of `size` bytes on `from` and reads it on `to`.
 * @returns its CID
 */
export async function fileCrosses(report: Report, from: Rpc, to: Rpc, size: number, seed: number): Promise<string> {
  const cid = await from.add({ file: [...keystream(size, seed)] });
  const began = performance.now();
  const digest = await to.digest(`/ipfs/${cid}`);
  const seconds = (performance.now() - began) / 1000;
  const speed = size < mebibyte ? "" : `, ${(size / mebibyte / seconds).toFixed(0)} MiB/s`;
  const much = size < mebibyte ? `${size} bytes` : `${size / mebibyte} MiB`;
  report.same(`${much} of ${from.name} read on ${to.name}${speed}: SHA-256`, digest, digestOf(keystream(size, seed)));
  return cid;
}

/** Adds a tree with small and larger files on `from`, and lists, reads and pins it on `to`. */
export async function treeCrosses(report: Report, from: Rpc, to: Rpc, seed: number): Promise<void> {
  const sizes: Readonly<Record<string, number>> = { "tree/empty": 0, "tree/sub/small": 100, "tree/sub/large": 700_000 };
  const many = Array.from({ length: 40 }, (_, at) => [`tree/many/${at}`, 10 + at] as const);
  const contents = Object.entries({ ...sizes, ...Object.fromEntries(many) });
  const files: Files = Object.fromEntries(contents.map(([name, size], at) => [name, [...keystream(size, seed + at)]]));
  const root = await from.add(files);
  const list = async (path: string) => {
    const { Objects } = await to.one<{ Objects: { Links: { Name: string }[] }[] }>("ls", { arg: path });
    return Objects.flatMap(({ Links }) => Links.map(({ Name }) => Name)).sort();
  };
  report.same(`a tree of ${from.name} listed on ${to.name}`, await list(`/ipfs/${root}`), ["empty", "many", "sub"]);
  report.same("its folder with many files", (await list(`/ipfs/${root}/many`)).length, many.length);
  report.same(
    "SHA-256 of a file in it",
    await to.digest(`/ipfs/${root}/sub/large`),
    digestOf(keystream(700_000, seed + contents.findIndex(([name]) => name === "tree/sub/large"))),
  );
  const { Pins } = await to.one<{ Pins: string[] }>("pin/add", { arg: root });
  report.same("pinned there recursively", Pins, [root]);
}

/** `from` announces a block to the routing table, and `to` finds `from` there. */
export async function providesFor(report: Report, from: Rpc, to: Rpc, seed: number): Promise<void> {
  const cid = await from.add({ file: [...keystream(2000, seed)] });
  await from.all(`${from.routing}/provide`, { arg: cid });
  const find = async () => {
    const events = await to.all<RoutingEvent>(`${to.routing}/findprovs`, { arg: cid, "num-providers": "5" });
    return events.filter(({ Type }) => Type === 4).flatMap(({ Responses }) => (Responses ?? []).map(({ ID }) => ID));
  };
  const found = await untilRight(find, (ids) => ids.includes(from.id));
  report.holds(`providers that ${to.name} finds`, found, `with ${from.name}, ${from.id}`, found.includes(from.id));
}

/** `one` finds the addresses of the other. */
export async function findsPeer(report: Report, one: Rpc, other: Rpc): Promise<void> {
  const events = await one.all<RoutingEvent>(`${one.routing}/findpeer`, { arg: other.id });
  const [last] = events.filter(({ Type }) => Type === 2).flatMap(({ Responses }) => Responses ?? []);
  const address = other.address.replace(/\/p2p\/.*/, "");
  report.holds(
    `addresses of ${other.name} that ${one.name} finds`,
    last?.Addrs ?? [],
    `with ${address}`,
    last?.Addrs.includes(address) ?? false,
  );
}

/**
 * Checks that the bytes that one has sent are those that the other has received: blocks by their
 * ledgers, streams by their counters. Other implementations also count the negotiation of
 * protocols: `slack` is the share of the total by which theirs may differ.
 */
export async function booksAgree(report: Report, from: Rpc, to: Rpc, atLeast: number, slack = 0): Promise<void> {
  const ledger = (of: Rpc, about: Rpc) => of.one<Ledger>("bitswap/ledger", { arg: about.id });
  const [given, got] = await untilRight(
    () => Promise.all([ledger(from, to), ledger(to, from)]),
    ([there, here]) => there.Sent === here.Recv,
  );
  report.holds(`bytes of blocks sent by ${from.name}`, given.Sent, `at least ${atLeast}`, given.Sent >= atLeast);
  report.same(`bytes of blocks received by ${to.name}`, got.Recv, given.Sent);
  report.same(`bytes sent by ${to.name} and received by ${from.name}`, given.Recv, got.Sent);
  report.same("exchanged blocks on both sides", got.Exchanged, given.Exchanged);
  const counters = (of: Rpc, about: Rpc) => of.one<Bandwidth>("stats/bw", { peer: about.id });
  const near = (one: number, other: number) => Math.abs(one - other) <= slack * (given.Sent + given.Recv);
  const [out, back] = await untilRight(
    () => Promise.all([counters(from, to), counters(to, from)]),
    ([there, here]) => near(there.TotalOut, here.TotalIn) && near(there.TotalIn, here.TotalOut),
  );
  report.holds(`stream bytes out of ${from.name}`, out.TotalOut, `at least ${given.Sent}`, out.TotalOut >= given.Sent);
  const about = slack === 0 ? "" : `, give or take ${slack * 100} %`;
  for (const [what, here, there] of [
    [`stream bytes into ${to.name}`, back.TotalIn, out.TotalOut],
    [`stream bytes from ${to.name} to ${from.name}`, out.TotalIn, back.TotalOut],
  ] as const) {
    report.holds(what, here, `${there}${about}`, near(here, there));
  }
}
