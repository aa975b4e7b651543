/**
 * A node with a file, and a gateway over HTTPS. It reports the CID, its address as a peer, and the
 * port of the gateway.
 */
import { createHost } from "#core/index.ts";
import { createNode, type NodeModule } from "#node/index.ts";
import { keystream } from "#test/support/content.ts";
import type { Giver } from "../sources.ts";

const { BENCH_FOLDER: folder = "", BENCH_SIZE: size = "" } = process.env;
const repo = `${folder}/repo`;

async function fill(): Promise<string> {
  await using node = await createNode({ repo, profile: "local", offline: true });
  const content = (async function* () {
    yield* keystream(Number(size), 1);
  })();
  const { cid } = await node.add({ content }, { cidVersion: 1, rawLeaves: true });
  return cid.toString();
}

const cid = await fill();
const host = createHost({
  config: {
    modules_enabled: ["http", "http_gateway"],
    http_ports: [],
    https_ports: [0],
    https_interfaces: ["127.0.0.1"],
    data_path: folder,
    node_repo_path: repo,
    http_log: false,
  },
  cwd: folder,
  log: { destination: { write: () => undefined } },
});
await host.start();
const node = host.exports<NodeModule>("node");
await node.open();
const { swarm } = await node.lowLevel.network();
const [address] = swarm.listenAddresses();
const reported: Giver = {
  cid,
  id: swarm.id.toString(),
  peerPort: Number(address?.toString().split("/")[4]),
  gatewayPort: host.listening().find(({ service }) => service === "https")?.port ?? 0,
};
process.on("disconnect", () => process.exit());
process.send?.(reported);
