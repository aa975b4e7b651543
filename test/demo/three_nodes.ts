/**
 * `npm run demo:three-nodes -- [--size MIB]`: runs three nodes on the loopback, each in a process
 * of its own, and drives them through their RPC alone. Prints every result with the expected one.
 * Exits with a non-zero code if one differs.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  booksAgree,
  connects,
  fileCrosses,
  findsPeer,
  identifies,
  peersOf,
  pings,
  providesFor,
  treeCrosses,
} from "#test/support/network/meeting.ts";
import { pinsRemotely } from "#test/support/network/remote_pins.ts";
import { Report, untilRight } from "#test/support/network/report.ts";
import { Rpc } from "#test/support/network/rpc.ts";
import { allowTunnels, tunnels } from "#test/support/network/tunnels.ts";
import { messagesCross, namesCross, namesFollowed } from "#test/support/network/words.ts";
import { RpcServer } from "#test/support/rpc_server.ts";

const { values: given } = parseArgs({ options: { size: { type: "string", default: "100" } } });
const size = Number(given.size) * 2 ** 20;

const token = "a-token-of-anna";
/** The node that pins for others has these settings. */
const pinning = {
  MODHOST_MODULES_ENABLED: "http,http_errors,http_health,http_api,http_pinning",
  MODHOST_PINNING_TOKENS: JSON.stringify([token]),
};
/**
 * ben resolves names by the routing table alone, and his RPC uses the other encoding of messages.
 */
const people = [
  ["anna", {}],
  ["ben", { MODHOST_NODE_NAMESYS_PUBSUB: "false", MODHOST_API_PUBSUB_WIRE: "multibase", ...pinning }],
  ["cleo", {}],
] as const;

const folder = await mkdtemp(join(tmpdir(), "modhost-three-nodes-"));
const servers: RpcServer[] = [];
const report = new Report();
try {
  for (const [name, env] of people) {
    await mkdir(join(folder, name));
    servers.push(await RpcServer.start({ folder: join(folder, name), env }));
  }
  const [anna, ben, cleo] = (await Promise.all(servers.map(({ url }, at) => Rpc.of(people[at]![0], url)))) as [
    Rpc,
    Rpc,
    Rpc,
  ];
  console.log([anna, ben, cleo].map(({ name, address }) => `${name}: ${address}`).join("\n"));

  await report.part("No node has peers", async () => {
    for (const node of [anna, ben, cleo]) report.same(`peers of ${node.name}`, await peersOf(node), []);
  });
  await report.part("They connect: ben to the other two, who are not connected to each other", async () => {
    await connects(report, ben, anna);
    await connects(report, cleo, ben);
  });
  await report.part("They learn about each other by identify", async () => {
    await identifies(report, ben, anna);
    await identifies(report, anna, ben);
  });
  await report.part("Ping, a line a second", () => pings(report, anna, ben));
  await report.part("Content added on anna is read on ben", async () => {
    await fileCrosses(report, anna, ben, 100, 1);
    await fileCrosses(report, anna, ben, size, 2);
  });
  await report.part("Their counters agree", () => booksAgree(report, anna, ben, size));
  await report.part("Content in the other direction, and whole trees", async () => {
    await fileCrosses(report, ben, anna, 5_000_000, 3);
    await treeCrosses(report, ben, anna, 10);
    await booksAgree(report, ben, anna, 5_000_000);
  });
  await report.part("Routing: cleo finds anna and her content through ben", async () => {
    await findsPeer(report, cleo, anna);
    await providesFor(report, anna, cleo, 100);
  });
  await report.part("Content by routing alone: cleo reads from anna without being connected first", async () => {
    for (const peer of await peersOf(cleo)) {
      if (peer === anna.id) await cleo.one("swarm/disconnect", { arg: `/p2p/${peer}` });
    }
    report.holds("peers of cleo", await peersOf(cleo), "without anna", !(await peersOf(cleo)).includes(anna.id));
    await fileCrosses(report, anna, cleo, 1_000_000, 4);
    await booksAgree(report, anna, cleo, 1_000_000);
  });
  await report.part("ben resolves a name of anna by routing", () => namesCross(report, anna, ben, 200));
  await report.part("Messages in both encodings", async () => {
    await messagesCross(report, [anna, "plain"], [ben, "multibase"]);
    await messagesCross(report, [ben, "multibase"], [cleo, "plain"]);
  });
  await report.part("Servers on anna's machine, used through ben", async () => {
    await Promise.all([anna, ben].map(allowTunnels));
    await tunnels(report, ben, anna);
  });
  await report.part("anna pins on ben, who serves the pinning service API", () =>
    pinsRemotely(report, anna, ben, { endpoint: `${servers[1]!.url}/pinning`, token }),
  );
  await report.part("A node that disconnects is no peer", async () => {
    await cleo.one("swarm/disconnect", { arg: ben.address });
    const left = await untilRight(
      () => peersOf(ben),
      (peers) => !peers.includes(cleo.id),
    );
    report.holds("peers of ben", left, "without cleo", !left.includes(cleo.id));
  });
  await report.part("Names over pubsub: cleo restarts without a routing table", async () => {
    await cleo.one("config", { arg: ["Routing.Type", "none"] });
    await servers[2]?.stop();
    servers[2] = await RpcServer.start({ folder: join(folder, "cleo") });
    const back = await Rpc.of("cleo", servers[2].url);
    report.same("the identity of cleo is the same", back.id, cleo.id);
    await connects(report, back, anna);
    await namesFollowed(report, anna, back, 300);
  });
} finally {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = report.end();
