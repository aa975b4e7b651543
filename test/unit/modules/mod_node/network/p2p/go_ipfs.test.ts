/** Tests tunnels whose target is dead, with go-ipfs at either end. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { P2p } from "#node/network/p2p/p2p.ts";
import { parseMultiaddr, splitPeer } from "#node/network/swarm/multiaddr.ts";
import { NodeLog } from "#node/util/log.ts";
import { freePort } from "#test/support/free_port.ts";
import { GoIpfs, withoutGoIpfs } from "#test/support/go_ipfs.ts";
import { startPeer } from "#test/unit/modules/mod_node/network/swarm/support.ts";

const skip = withoutGoIpfs;
const tcp = (port: number) => parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}`);

async function start(t: TestContext) {
  const go = await GoIpfs.start();
  t.after(() => go[Symbol.asyncDispose]());
  await go.call("config?arg=Experimental.Libp2pStreamMounting&arg=true&bool=true");
  const { swarm, stop } = await startPeer();
  const own = new P2p({ libp2p: swarm.libp2p, swarm, log: new NodeLog() });
  await own.start();
  t.after(() => stop());
  t.after(() => own.stop());
  return { go, swarm, own };
}

/**
 * Resolves to everything that arrives, with or without sending data first; "reset" if the
 * connection ends with a reset.
 */
async function received(port: number, says = ""): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  if (says !== "") socket.write(says);
  try {
    return Buffer.concat(await socket.toArray()).toString();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNRESET" ? "reset" : String(error);
  }
}

test("a client is disconnected when the target is dead, whichever node forwards, and the listeners stay", {
  skip,
}, async (t) => {
  const { go, swarm, own } = await start(t);
  const { id, address } = splitPeer(parseMultiaddr(go.address));
  await swarm.connect(id, address === undefined ? [] : [address]);
  const dead = await freePort();
  await own.listen("/x/ours", tcp(dead), { custom: false, reportPeer: false });
  await go.call(`p2p/listen?arg=/x/theirs&arg=/ip4/127.0.0.1/tcp/${dead}`);
  const theirPort = await freePort();
  await go.call(`p2p/forward?arg=/x/ours&arg=/ip4/127.0.0.1/tcp/${theirPort}&arg=/p2p/${swarm.id}`);
  await own.forward("/x/theirs", tcp(0), { id, addresses: [] }, { custom: false });
  await own.forward("/x/nobody", tcp(0), { id, addresses: [] }, { custom: false });
  const [ourPort, nobody] = own.list().map(({ listen }) => Number(listen.split("/").at(-1)));
  for (const port of [theirPort, ourPort as number, nobody as number]) {
    assert.equal(await received(port), "");
    assert.match(await received(port, "anybody there?"), /^(reset|)$/);
  }
  assert.equal(own.list().length, 3);
  const [listed] = await go.call<{ Listeners: readonly unknown[] }>("p2p/ls");
  assert.equal(listed?.Listeners.length, 2);
});

test("a peer that was met before is reached by its id alone", { skip }, async (t) => {
  const { go, swarm } = await start(t);
  const { id, address } = splitPeer(parseMultiaddr(go.address));
  await swarm.connect(id, address === undefined ? [] : [address]);
  await swarm.disconnect(id, undefined);
  await swarm.connect(id);
  await go.call(`swarm/disconnect?arg=/p2p/${swarm.id}`);
  await go.call(`swarm/connect?arg=/p2p/${swarm.id}`);
});
