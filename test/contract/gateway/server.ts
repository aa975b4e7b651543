/**
 * Starts a gateway at the address in a repo, like a daemon. It has the fixtures of the recorded
 * requests, and fetches nothing.
 */
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createNode, parsePeerId } from "#node/index.ts";
import { publishedKey } from "#node/network/ipns_record/keys.ts";
import { blocksIn } from "#test/support/car_blocks.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { filled, fixtures, fixturesFolder, nameMap } from "./replay.ts";

export interface GatewayServer extends TestHost {
  /** URL of `Addresses.Gateway`. */
  readonly url: string;
}

export async function startGateway(config: Readonly<Record<string, unknown>> = {}): Promise<GatewayServer> {
  // The node reads this variable when it is opened.
  const { IPFS_NS_MAP: before } = process.env;
  process.env.IPFS_NS_MAP = nameMap();
  try {
    const host = await startHost({
      prepare: (folder) => provision(join(folder, "data", "repo")),
      config: { modules_enabled: ["http", "http_api", "http_gateway"], https_ports: [], node_offline: true, ...config },
    });
    const port = host.host.listening().find(({ service }) => service === "http_api_gateway")?.port;
    return Object.assign(host, { url: `http://127.0.0.1:${port}` });
  } finally {
    if (before === undefined) delete process.env.IPFS_NS_MAP;
    else process.env.IPFS_NS_MAP = before;
  }
}

/**
 * Stores the blocks as they are, because no import accepts some of their hash functions and codecs.
 */
export async function provision(repo: string): Promise<void> {
  await using node = await createNode({ repo, offline: true });
  const { config } = node.lowLevel.repo;
  await config.set("Addresses.Gateway", () => "/ip4/127.0.0.1/tcp/0");
  await config.set("Gateway.PublicGateways", () => fixtures.publicGateways);
  await node.lowLevel.blocks.store.put(blocksIn(readFileSync(join(fixturesFolder, "fixtures.car"))));
  for (const [name, record] of Object.entries(fixtures.records)) {
    const key = publishedKey(parsePeerId(fixtures.keys[name] as string));
    await node.lowLevel.metadata.transaction((writer) => writer.put(key, Buffer.from(record, "base64")));
  }
  await mkdir(join(repo, "denylists"));
  await writeFile(join(repo, "denylists", "recorded.deny"), filled(`${fixtures.denylist.join("\n")}\n`));
}
