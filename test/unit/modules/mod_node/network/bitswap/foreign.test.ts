/**
 * Exchanges blocks with other implementations: the bitswap of Helia, and go-ipfs if GO_IPFS names
 * its program.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { createBitswap } from "@helia/bitswap";
import type { PeerId } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { multiaddr } from "@multiformats/multiaddr";
import { MemoryBlockstore } from "blockstore-core";
import { CID } from "multiformats/cid";
import { sha256 } from "multiformats/hashes/sha2";
import { blockOf, connect, host, peer, someBlocks, until } from "./support.ts";

/** A Helia bitswap whose routing knows no peers. */
async function helia(t: TestContext) {
  const libp2p = await host(t);
  const blockstore = new MemoryBlockstore();
  const nobody = async function* () {};
  const routing = { findProviders: nobody, findPeers: nobody };
  const bitswap = createBitswap({
    libp2p: libp2p as never,
    blockstore,
    routing: routing as never,
    logger: libp2p.logger,
    getHasher: () => sha256 as never,
  });
  await bitswap.start();
  t.after(() => bitswap.stop());
  return { libp2p, blockstore, bitswap };
}

const cases = [
  ["small", 200, 500],
  ["middling", 50, 60_000],
  ["large", 4, 1_900_000],
] as const;

for (const [name, count, size] of cases) {
  test(`${name} blocks come from Helia and go to Helia`, async (t) => {
    const [node, other] = await Promise.all([peer(t), helia(t)]);
    const theirs = someBlocks(count, size);
    const ours = someBlocks(count, size);
    for (const { cid, bytes } of theirs) await other.blockstore.put(cid as never, bytes);
    await node.blocks.put(ours);
    await connect(node, other);
    await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
    const signal = AbortSignal.timeout(60_000);
    const got = await Promise.all(theirs.map(({ cid }) => node.blocks.get(cid, { signal })));
    for (const [at, { bytes }] of theirs.entries()) assert.ok(Buffer.compare(bytes, got[at] as Uint8Array) === 0);
    const given = await Promise.all(ours.map(({ cid }) => other.bitswap.want(cid as never, { signal })));
    for (const [at, { bytes }] of ours.entries()) assert.ok(Buffer.compare(bytes, given[at] as Uint8Array) === 0);
    const { unwantedBlocksReceived, malformedMessages, wantlist } = node.bitswap.stat();
    assert.deepEqual([unwantedBlocksReceived, malformedMessages, wantlist], [0, 0, []]);
  });
}

test("Helia gets blocks that are stored later, and DONT_HAVE for missing ones", async (t) => {
  const [node, other] = await Promise.all([peer(t), helia(t)]);
  await connect(other, node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const block = blockOf(randomBytes(20_000));
  const got = other.bitswap.want(block.cid as never, { signal: AbortSignal.timeout(60_000) });
  await until(() => node.bitswap.wantlist(other.libp2p.peerId).length === 1, "the want is known");
  await node.blocks.put([block]);
  assert.ok(Buffer.compare(await got, block.bytes) === 0);
});

const program = process.env.GO_IPFS;
const run = promisify(execFile);

interface GoNode {
  readonly address: string;
  readonly env: NodeJS.ProcessEnv;
}

/** A running go-ipfs without other peers. */
async function goNode(t: TestContext, ipfs: string): Promise<GoNode> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-go-"));
  const env = { ...process.env, IPFS_PATH: folder };
  let daemon: ChildProcess | undefined;
  t.after(async () => {
    if (daemon !== undefined && daemon.exitCode === null) {
      daemon.kill();
      await once(daemon, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  });
  await run(ipfs, ["init", "--profile=test"], { env });
  await run(ipfs, ["bootstrap", "rm", "--all"], { env });
  daemon = spawn(ipfs, ["daemon"], { env, stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of daemon.stdout as AsyncIterable<Buffer>) if (line.includes("Daemon is ready")) break;
  const { stdout } = await run(ipfs, ["id", "--format=<addrs>"], { env });
  return { address: stdout.split("\n").find((each) => each.includes("/tcp/")) as string, env };
}

test("blocks cross both ways with go-ipfs, and the ledgers of both agree", {
  skip: program === undefined,
}, async (t) => {
  const ipfs = program as string;
  const [node, go] = await Promise.all([peer(t, {}, host(t, [noise()])), goNode(t, ipfs)]);
  const file = join(go.env.IPFS_PATH as string, "content");
  const content = randomBytes(5_000_000);
  await writeFile(file, content);
  await run(ipfs, ["add", "-Q", "--raw-leaves", file], { env: go.env });
  const { stdout } = await run(ipfs, ["refs", "local"], { env: go.env });
  const cids = stdout
    .trim()
    .split("\n")
    .map((text) => CID.parse(text));
  await node.libp2p.dial(multiaddr(go.address));
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const signal = AbortSignal.timeout(60_000);
  const got = await Promise.all(cids.map((cid) => node.blocks.get(cid, { signal })));
  const total = got.reduce((sum, { length }) => sum + length, 0);
  assert.ok(total > content.length);
  const [goId] = node.libp2p.getPeers() as [PeerId];
  const { received, exchanged } = node.bitswap.ledger(goId);
  assert.deepEqual([received, exchanged], [total, cids.length]);

  const ours = [...someBlocks(20, 100_000), ...someBlocks(50, 300)];
  await node.blocks.put(ours);
  for (const { cid } of ours) {
    const { stdout: hex } = await run("sh", ["-c", '"$0" block get "$1" | sha256sum', ipfs, cid.toString()], {
      env: go.env,
    });
    assert.equal(hex.slice(0, 64), Buffer.from(cid.multihash.digest).toString("hex"));
  }
  const sent = ours.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const { stdout: ledger } = await run(ipfs, ["bitswap", "ledger", node.id.toString()], { env: go.env });
  assert.match(
    ledger,
    new RegExp(`Exchanges:\t${cids.length + ours.length}\nBytes sent:\t${total}\nBytes received:\t${sent}\n`),
  );
  assert.equal(node.bitswap.ledger(goId).sent, sent);
});
