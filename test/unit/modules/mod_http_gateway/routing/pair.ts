/** Two connected nodes; the gateway of one of them is the router under test. */
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startOnline } from "#test/unit/modules/mod_http_api/commands/support.ts";

export interface RoutingPair extends AsyncDisposable {
  readonly gatewayHost: RpcHost;
  /** URL of the gateway of `gatewayHost`. */
  readonly url: string;
  readonly other: RpcHost;
  readonly otherId: string;
  /** Address of the other node, without its id. */
  readonly address: string;
}

/** @param config further options of both hosts */
export async function startRoutingPair(config: Record<string, unknown> = {}): Promise<RoutingPair> {
  const values = { "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0", "Discovery.MDNS.Enabled": false };
  const modules = { modules_enabled: ["http", "http_api", "http_gateway"], ...config };
  const hosts = await Promise.all([startOnline(values, modules), startOnline(values, modules)]);
  const [gatewayHost, other] = hosts;
  const facts = await other.value<{ ID: string; Addresses: readonly string[] }>("id");
  const swarm = facts.Addresses[0] as string;
  await gatewayHost.call(`swarm/connect?arg=${swarm}`);
  for (const host of hosts) {
    const isConnected = async () => (await host.call("stats/dht?arg=lan")).text.includes('"Connected":true');
    await eventually("the routing tables of both nodes contain the other node", isConnected);
  }
  const port = gatewayHost.host.listening().find(({ service }) => service === "http_api_gateway")?.port;
  return {
    gatewayHost,
    url: `http://127.0.0.1:${port}`,
    other,
    otherId: facts.ID,
    address: swarm.slice(0, swarm.indexOf("/p2p/")),
    async [Symbol.asyncDispose]() {
      await Promise.all(hosts.map((host) => host.stop()));
    },
  };
}

/** Adds a block to a node, announces it, and returns its CID. */
export async function provided(host: RpcHost, text: string): Promise<string> {
  const { lines } = await host.call("add?cid-version=1", { file: text });
  const cid = (lines[0] as { Hash: string }).Hash;
  const { status, text: failure } = await host.call(`dht/provide?arg=${cid}`);
  if (status !== 200) throw new Error(failure);
  return cid;
}
