import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parseMultiaddr, splitPeer } from "#node/network/swarm/multiaddr.ts";
import { agentVersion } from "#node/util/agent_version.ts";
import { GoIpfs, withoutGoIpfs } from "#test/support/go_ipfs.ts";
import { startPeer, type TestPeer } from "./support.ts";

const skip = withoutGoIpfs;

interface Facts {
  readonly ID: string;
  readonly AgentVersion: string;
  readonly Protocols: readonly string[];
}

const addressOf = ({ swarm }: TestPeer) => `${swarm.listenAddresses()[0]}/p2p/${swarm.id}`;

async function connect({ swarm }: TestPeer, { address: text }: GoIpfs) {
  const { id, address } = splitPeer(parseMultiaddr(text));
  return swarm.connect(id, address === undefined ? [] : [address]);
}

test("a node dials and identifies go-ipfs, which responds to pings", { skip }, async () => {
  await using go = await GoIpfs.start();
  await using a = await startPeer();
  const connection = await connect(a, go);
  assert.deepEqual([connection.encryption, connection.multiplexer], ["/noise", "/yamux/1.0.0"]);
  const facts = await a.swarm.peerInfo(connection.remotePeer);
  assert.match(facts.agentVersion, /^go-ipfs\/0\.9\.0\//);
  assert.ok(facts.protocols.includes("/ipfs/bitswap/1.2.0"));
  const echo = await a.swarm.ping.open(connection.remotePeer);
  for (let left = 20; left > 0; left--) assert.ok((await echo.ping()) > 0);
  echo.close();
});

test("go-ipfs dials and identifies a node, which responds to pings", { skip }, async () => {
  await using go = await GoIpfs.start();
  await using a = await startPeer();
  const { id } = a.swarm;
  assert.deepEqual(await go.call(`swarm/connect?arg=${addressOf(a)}`), [{ Strings: [`connect ${id} success`] }]);
  const [facts] = await go.call<Facts>(`id?arg=${id}`);
  assert.deepEqual([facts?.ID, facts?.AgentVersion], [id.toString(), agentVersion]);
  assert.ok(facts?.Protocols.includes("/ipfs/ping/1.0.0"));
  const echoes = await go.call<{ Success: boolean; Text: string }>(`ping?arg=${id}&count=2`);
  assert.deepEqual(
    echoes.map(({ Success }) => Success),
    [true, true, true, true],
  );
  assert.deepEqual(
    a.swarm.connections().map(({ direction }) => direction),
    ["inbound"],
  );
});

test("noise and mplex work with go-ipfs", { skip }, async () => {
  await using go = await GoIpfs.start();
  const config = { "Swarm.Transports.Multiplexers.Yamux": false };
  await using a = await startPeer({ config });
  const connection = await connect(a, go);
  assert.deepEqual([connection.encryption, connection.multiplexer], ["/noise", "/mplex/6.7.0"]);
  const echo = await a.swarm.ping.open(connection.remotePeer);
  assert.ok((await echo.ping()) > 0);
});

test("a node and go-ipfs with the same key connect in a private network", { skip }, async () => {
  const file = `/key/swarm/psk/1.0.0/\n/base16/\n${randomBytes(32).toString("hex")}\n`;
  await using go = await GoIpfs.start([], (repo) => writeFile(join(repo, "swarm.key"), file));
  await using a = await startPeer({ prepare: ({ path }) => writeFile(join(path, "swarm.key"), file) });
  await connect(a, go);
  await using open = await startPeer();
  await assert.rejects(connect(open, go));
});
