import assert from "node:assert/strict";
import { test } from "node:test";
import { circuitRelayServer } from "@libp2p/circuit-relay-v2";
import { identify } from "@libp2p/identify";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p } from "libp2p";
import { type RpcHost, startOnline } from "./support.ts";

interface Identity {
  readonly ID: string;
  readonly Addresses: readonly string[];
}

const content = "abcdefgh".repeat(50_000);
/** A node that can dial, but cannot be dialled. */
const mute = { "Addresses.Swarm": [] };

async function add(host: RpcHost): Promise<string> {
  const [added] = (await host.call("add?progress=false", { file: content })).lines as [{ Hash: string }];
  return added.Hash;
}

const addressOf = async (host: RpcHost) => (await host.value<Identity>("id")).Addresses[0] as string;
const strings = async (host: RpcHost, path: string) => (await host.value<{ Strings: string[] | null }>(path)).Strings;

test("a node behind a relay can be connected to, pinged and read from through it", async () => {
  await using relay = await startOnline({ "Swarm.EnableRelayHop": true });
  const through = `${await addressOf(relay)}/p2p-circuit`;
  await using hidden = await startOnline({ "Addresses.Swarm": [through] });
  await using reader = await startOnline(mute);
  const { ID, Addresses } = await hidden.value<Identity>("id");
  assert.deepEqual(Addresses, [`${through}/p2p/${ID}`]);
  assert.deepEqual(await strings(hidden, "swarm/addrs/local"), [through]);
  assert.deepEqual(await strings(hidden, "swarm/addrs/listen"), [through, "/p2p-circuit"]);

  assert.deepEqual(await strings(reader, `swarm/connect?arg=${through}/p2p/${ID}`), [`connect ${ID} success`]);
  const { Peers } = await reader.value<{ Peers: { Peer: string; Addr: string }[] }>("swarm/peers");
  assert.equal(Peers.find(({ Peer }) => Peer === ID)?.Addr, through);
  const echoes = (await reader.call(`ping?arg=${ID}&count=1`)).lines as { Success: boolean; Time: number }[];
  assert.ok(echoes[1]?.Success === true && echoes[1].Time > 0);
  assert.equal((await reader.call(`cat?arg=${await add(hidden)}`)).text, content);
});

test("a limited relay carries echoes, but no blocks", async () => {
  await using relay = await strangerThatRelays();
  const through = `${relay.getMultiaddrs()[0]}/p2p-circuit`;
  await using hidden = await startOnline({ "Addresses.Swarm": [through] });
  await using reader = await startOnline(mute);
  const { ID } = await hidden.value<Identity>("id");
  await strings(reader, `swarm/connect?arg=${through}/p2p/${ID}`);
  const echoes = (await reader.call(`ping?arg=${ID}&count=1`)).lines as { Success: boolean }[];
  assert.equal(echoes[1]?.Success, true);
  assert.deepEqual((await reader.value<{ Peers: string[] }>("bitswap/stat")).Peers, []);
  assert.deepEqual(await reader.failure(`block/get?arg=${await add(hidden)}&timeout=300ms`), [
    500,
    "context deadline exceeded",
  ]);
});

test("a node relays only if it is configured to", async () => {
  await using plain = await startOnline();
  const through = `${await addressOf(plain)}/p2p-circuit`;
  await using hidden = await startOnline({ "Addresses.Swarm": [through] });
  const { ID, Addresses } = await hidden.value<Identity>("id");
  assert.deepEqual(Addresses, [`/p2p/${ID}`]);
  assert.match(hidden.log(), /p2p-circuit is not listened on: .*could not negotiate .*\/hop/);
  await using reader = await startOnline(mute);
  const [status, reason] = await reader.failure(`swarm/connect?arg=${through}/p2p/${ID}`);
  assert.equal(status, 500);
  const text = `connect ${ID} failure: failed to dial ${ID}:\n  * [${through}] `;
  assert.equal(String(reason).slice(0, text.length), text);
  assert.match(String(reason), /could not negotiate \/libp2p\/circuit\/relay\/0\.2\.0\/hop$/);
});

async function strangerThatRelays() {
  const stranger = await createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: { identify: identify(), relay: circuitRelayServer() },
  });
  return Object.assign(stranger, { [Symbol.asyncDispose]: async () => stranger.stop() });
}
