/** Two nodes that know each other, of which one is asked for routes at its gateway. */
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startOnline } from "#test/unit/modules/mod_http_api/commands/support.ts";

export interface RoutingPair extends AsyncDisposable {
  readonly asked: RpcHost;
  /** Of the gateway of `asked`. */
  readonly url: string;
  readonly other: RpcHost;
  readonly otherId: string;
  /** Where the other listens, without its id. */
  readonly address: string;
}

/** `config`: further options of both hosts. */
export async function startRoutingPair(config: Record<string, unknown> = {}): Promise<RoutingPair> {
  const values = { "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0", "Discovery.MDNS.Enabled": false };
  const modules = { modules_enabled: ["http", "http_api", "http_gateway"], ...config };
  const hosts = await Promise.all([startOnline(values, modules), startOnline(values, modules)]);
  const [asked, other] = hosts;
  const facts = await other.value<{ ID: string; Addresses: readonly string[] }>("id");
  const swarm = facts.Addresses[0] as string;
  await asked.call(`swarm/connect?arg=${swarm}`);
  for (const host of hosts) {
    const isConnected = async () => (await host.call("stats/dht?arg=lan")).text.includes('"Connected":true');
    await eventually("the tables of the two have each other", isConnected);
  }
  const port = asked.host.listening().find(({ service }) => service === "http_api_gateway")?.port;
  return {
    asked,
    url: `http://127.0.0.1:${port}`,
    other,
    otherId: facts.ID,
    address: swarm.slice(0, swarm.indexOf("/p2p/")),
    async [Symbol.asyncDispose]() {
      await Promise.all(hosts.map((host) => host.stop()));
    },
  };
}

/** A block of a node that has announced it. */
export async function provided(host: RpcHost, text: string): Promise<string> {
  const { lines } = await host.call("add?cid-version=1", { file: text });
  const cid = (lines[0] as { Hash: string }).Hash;
  const { status, text: told } = await host.call(`dht/provide?arg=${cid}`);
  if (status !== 200) throw new Error(told);
  return cid;
}
