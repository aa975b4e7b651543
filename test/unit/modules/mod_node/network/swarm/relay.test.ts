import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { freePort } from "#test/support/free_port.ts";
import { connectTo, startPeer, type TestPeer } from "./support.ts";

const relayed = (peer: TestPeer) =>
  parseMultiaddr(`${peer.swarm.listenAddresses()[0]}/p2p/${peer.swarm.id}/p2p-circuit`);

const announced = ({ swarm }: TestPeer) => swarm.announcedAddresses().map(String);

/** Resolves when the addresses that a peer listens on change. */
function listening({ swarm: { libp2p } }: TestPeer): Promise<unknown> {
  return new Promise((resolve) => libp2p.addEventListener("transport:listening", resolve, { once: true }));
}

/** A relay, and a peer behind it. */
async function behindRelay(
  config: Record<string, unknown> = {},
): Promise<readonly [relay: TestPeer, hidden: TestPeer]> {
  const relay = await startPeer({ config: { "Swarm.EnableRelayHop": true } });
  const swarm = [String(relayed(relay)), ...((config["Addresses.Swarm"] as string[]) ?? [])];
  return [relay, await startPeer({ config: { ...config, "Addresses.Swarm": swarm } })];
}

test("a relay is found among connected peers, and again after it was away", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-relay-"));
  const config = { "Swarm.EnableRelayHop": true };
  await using hidden = await startPeer({ config: { "Addresses.Swarm": [], "Swarm.EnableAutoRelay": true } });
  for (let round = 0; round < 2; round++) {
    await using relay = await startPeer({ folder, config });
    const found = listening(hidden);
    await connectTo(hidden, relay);
    await found;
    assert.deepEqual(announced(hidden), [String(relayed(relay))]);
    const lost = listening(hidden);
    await relay.stop();
    await lost;
    assert.deepEqual(announced(hidden), []);
  }
  await rm(folder, { recursive: true, force: true });
});

/** Resolves when the only connection to another peer does not use a relay. */
function direct(own: TestPeer, other: TestPeer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = () => {
    const open = own.swarm.connections(other.swarm.id).map(({ remoteAddr }) => String(remoteAddr));
    if (open.length === 1 && !open[0]?.includes("p2p-circuit")) resolve();
  };
  for (const event of ["connection:open", "connection:close"] as const) own.swarm.libp2p.addEventListener(event, look);
  look();
  return promise;
}

test("a peer that dialled through a relay is dialled back directly, and the relayed connection is closed", async () => {
  const [relay, hidden] = await behindRelay();
  await using _relay = relay;
  await using _hidden = hidden;
  const port = await freePort();
  // A DNS name counts as a publicly reachable address.
  const config = {
    "Addresses.Swarm": [`/ip4/127.0.0.1/tcp/${port}`],
    "Addresses.Announce": [`/dns4/localhost/tcp/${port}`],
  };
  await using open = await startPeer({ config });
  await open.swarm.connect(hidden.swarm.id, [relayed(relay)]);
  await Promise.all([direct(open, hidden), direct(hidden, open)]);
  assert.deepEqual(
    open.swarm.connections(hidden.swarm.id).map(({ direction }) => direction),
    ["inbound"],
  );
});

test("two peers behind a relay dial each other by hole punching", async () => {
  const port = await freePort();
  const swarm = {
    "Addresses.Swarm": [`/ip4/127.0.0.1/tcp/${port}`],
    "Addresses.Announce": [`/dns4/localhost/tcp/${port}`],
  };
  const [relay, hidden] = await behindRelay(swarm);
  await using _relay = relay;
  await using _hidden = hidden;
  // The announced address does not respond, so only the peer itself can open the connection.
  const nowhere = { "Addresses.Swarm": [], "Addresses.Announce": [`/dns4/localhost/tcp/${await freePort()}`] };
  await using shut = await startPeer({ config: nowhere });
  await shut.swarm.connect(hidden.swarm.id, [relayed(relay)]);
  await Promise.all([direct(shut, hidden), direct(hidden, shut)]);
  assert.deepEqual(
    shut.swarm.connections(hidden.swarm.id).map(({ direction }) => direction),
    ["outbound"],
  );
});
