/** Scenes of two nodes that use features since version 0.9. */
import { keystream } from "#test/support/content.ts";
import { peersOf } from "#test/support/network/meeting.ts";
import { type Report, untilRight } from "#test/support/network/report.ts";
import type { Rpc } from "#test/support/network/rpc.ts";
import { named, namesCross, published, resolved } from "#test/support/network/words.ts";
import { RpcServer } from "#test/support/rpc_server.ts";

/**
 * Number of files that are added at once, and milliseconds within which all of them must be
 * announced.
 */
const SWEPT_FILES = 30;
const SWEEP_WITHIN_MS = 60_000;

/** Our node, which can be restarted on its folder. */
export class OwnNode implements AsyncDisposable {
  readonly #start: () => Promise<RpcServer>;
  #server: RpcServer;

  private constructor(start: () => Promise<RpcServer>, server: RpcServer) {
    this.#start = start;
    this.#server = server;
  }

  /**
   * @param level level of the RPC; undefined is that of version 0.9
   * @param address address for other nodes
   */
  static async start(folder: string, level: string | undefined, address: string): Promise<OwnNode> {
    const env = level === undefined ? {} : { MODHOST_API_LEVEL: level };
    const start = () => RpcServer.start({ folder, env });
    const own = new OwnNode(start, await start());
    const query = new URLSearchParams({ arg: "Addresses.Swarm", json: "true" });
    query.append("arg", JSON.stringify([address]));
    const response = await fetch(`${own.url}/api/v0/config?${query}`, { method: "POST" });
    if (!response.ok) throw new Error(`config: ${await response.text()}`);
    return own;
  }

  get url(): string {
    return this.#server.url;
  }

  async startAgain(): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
    this.#server = await this.#start();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]();
  }
}

interface Connections {
  readonly Peers: readonly { readonly Addr: string; readonly Peer: string }[] | null;
}

/** Checks that the connection between them uses this transport. */
export async function meetsOver(report: Report, one: Rpc, other: Rpc, transport: string): Promise<void> {
  const { Peers } = await one.one<Connections>("swarm/peers");
  const addresses = (Peers ?? []).filter(({ Peer }) => Peer === other.id).map(({ Addr }) => Addr);
  const holds = addresses.length > 0 && addresses.every((address) => address.endsWith(`/${transport}`));
  report.holds(`addresses of ${other.name} at ${one.name}`, addresses, `over ${transport}`, holds);
}

interface Inspected {
  readonly SignatureType: string;
  readonly Entry: { readonly Value: string };
  readonly Validation: { readonly Valid: boolean } | null;
}

/**
 * Checks records of names with both signatures and with only the second one, by name and as bytes.
 */
export async function recordsCross(report: Report, from: Rpc, to: Rpc, seed: number): Promise<void> {
  for (const [at, [v1compat, signatures]] of [
    ["true", "V1+V2"],
    ["false", "V2"],
  ].entries() as Iterable<[number, [string, string]]>) {
    await namesCross(report, from, to, seed + 10 * at, { v1compat });
    const { key, name } = await named(from, `${to.name}-record-${at}`);
    const path = await published(from, key, seed + 10 * at + 5, { v1compat });
    const record = await untilRight(
      () => recordOf(to, name),
      (found) => found !== undefined,
    );
    const body = new FormData();
    body.append("file", new Blob([record ?? new Uint8Array()]));
    const seen = await to.one<Inspected>("name/inspect", { verify: name }, body);
    report.same(`signatures of a record of ${from.name} at ${to.name}`, seen.SignatureType, signatures);
    report.same("its value and its validity", [seen.Entry.Value, seen.Validation?.Valid], [path, true]);
  }
  await recordsAreHandedOn(report, from, to, seed + 50);
}

/** Resolves to the bytes of a record from the routing system, or to undefined. */
async function recordOf(on: Rpc, name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const events = await on.all<{ Type: number; Extra: string }>("routing/get", { arg: `/ipns/${name}` }).catch(() => []);
  const found = events.find(({ Type }) => Type === 5);
  return found === undefined ? undefined : Buffer.from(found.Extra, "base64");
}

/** Lets `to` put a record that `from` has made and not published. `from` then resolves it. */
async function recordsAreHandedOn(report: Report, from: Rpc, to: Rpc, seed: number): Promise<void> {
  const { key, name } = await named(from, `${to.name}-handed-on`);
  const path = await published(from, key, seed, { "allow-offline": "true" });
  const record = await recordOf(from, name);
  const body = new FormData();
  body.append("value-file", new Blob([record ?? new Uint8Array()]));
  const events = await to.all<{ Type: number }>("routing/put", { arg: `/ipns/${name}` }, body);
  report.holds(
    `${to.name} puts a record of ${from.name}`,
    events,
    "an event of type 5",
    events.some(({ Type }) => Type === 5),
  );
  report.same(`the value that ${to.name} then resolves`, await resolved(to, name), path);
}

interface Found {
  readonly Type: number;
  readonly Responses: readonly { readonly ID: string }[] | null;
}

/**
 * Checks that the sweep of `one` announces its content without a call: the other node finds the
 * provider of each of many files.
 */
export async function announcesByRegion(report: Report, one: Rpc, other: Rpc, seed: number): Promise<void> {
  const cids = await Promise.all(
    Array.from({ length: SWEPT_FILES }, (_, at) => one.add({ file: [...keystream(100, seed + at)] })),
  );
  const isFound = async (cid: string) => {
    const events = await other.all<Found>("routing/findprovs", { arg: cid, "num-providers": "1" });
    return events.some(({ Type, Responses }) => Type === 4 && Responses?.some(({ ID }) => ID === one.id) === true);
  };
  const found = await untilRight(
    async () => (await Promise.all(cids.map(isFound))).filter(Boolean).length,
    (count) => count === SWEPT_FILES,
    SWEEP_WITHIN_MS,
  );
  report.same(`files of ${one.name} whose provider ${other.name} finds`, found, SWEPT_FILES);
  const { Sweep } = await one.one<{ Sweep: { operations: { past: { keys_provided: number } } } | null }>(
    "provide/stat",
    { lan: "true" },
  );
  const provided = Sweep?.operations.past.keys_provided ?? 0;
  report.holds(
    `keys that the sweep of ${one.name} has announced`,
    provided,
    `${SWEPT_FILES} at least`,
    provided >= SWEPT_FILES,
  );
}

/** Checks that `one` reconnects by itself to a peer of its list of permanent peers. */
export async function keepsConnected(report: Report, one: Rpc, other: Rpc): Promise<void> {
  const added = await one.one("swarm/peering/add", { arg: other.address });
  report.same(`${one.name} adds ${other.name} to its permanent peers`, added, { ID: other.id, Status: "success" });
  await other.all("swarm/disconnect", { arg: `/p2p/${one.id}` });
  const peers = await untilRight(
    () => peersOf(other),
    (ids) => ids.includes(one.id),
    30_000,
  );
  report.holds(`peers of ${other.name} after it has closed the connection`, peers, one.id, peers.includes(one.id));
  const { Peers } = await one.one<{ Peers: readonly { ID: string }[] }>("swarm/peering/ls");
  report.same(
    `whom ${one.name} keeps`,
    Peers.map(({ ID }) => ID),
    [other.id],
  );
  const removed = await one.one("swarm/peering/rm", { arg: other.id });
  report.same("after it is removed from the list", removed, { ID: other.id, Status: "success" });
}

type Scope = Readonly<Record<string, unknown>>;
interface Resources {
  readonly System: Scope;
  readonly Transient: Scope;
  readonly Services: Readonly<Record<string, Scope>>;
}

/**
 * Checks that both report the same resources of connections, and count at least the connection
 * between them.
 */
export async function countsResources(report: Report, one: Rpc, other: Rpc): Promise<void> {
  const [here, there] = await Promise.all([one, other].map((node) => node.one<Resources>("swarm/resources")));
  const fields = (scope: Scope | undefined) => Object.keys(scope ?? {}).sort();
  report.same(`what ${one.name} counts`, fields(here?.System), fields(there?.System));
  report.same("of connections without a protocol yet", fields(here?.Transient), fields(there?.Transient));
  const own = Number(here?.System.ConnsUsage);
  report.holds(`connections of ${one.name}`, own, "at least one", own >= 1);
}

/** Checks that our node dials its permanent peers after a restart, too. */
export async function meetAgain(report: Report, ours: OwnNode, own: Rpc, other: Rpc): Promise<void> {
  await report.part(`${other.name}: after a restart`, async () => {
    await own.all("swarm/peering/add", { arg: other.address });
    await ours.startAgain();
    const peers = await untilRight(
      () => peersOf(other),
      (ids) => ids.includes(own.id),
      30_000,
    );
    report.holds(`peers of ${other.name}`, peers, `with ${own.name}, ${own.id}`, peers.includes(own.id));
  });
}
