import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host.stop());

test("mount needs a network, and checks both folders first", async () => {
  assert.deepEqual(await host.failure("mount"), [
    500,
    "this command must be run in online mode. Try running 'ipfs daemon' first",
  ]);
  const online = await startRpc({ node_offline: false });
  try {
    const there = join(online.folder, "there");
    const file = join(online.folder, "file");
    await mkdir(there);
    await writeFile(file, "");
    await online.call(`config?arg=Mounts.IPFS&arg=${there}`);
    await online.call("config?arg=Mounts.IPNS&arg=/no/such/folder");
    const bad = "mountpoint does not exist: /no/such/folder";
    const other = `fuse failed to access mountpoint ${file}`;
    assert.deepEqual(await online.failure("mount"), [500, bad]);
    assert.deepEqual(await online.failure("mount?f=/no/such/folder"), [500, bad]);
    assert.deepEqual(await online.failure(`mount?ipns-path=${file}`), [500, other]);
  } finally {
    await online.stop();
  }
});

test("update explains how to get updates", async () => {
  const { status, text } = await host.call("update?arg=install&arg=latest");
  assert.equal(status, 200);
  assert.match(text, /^modhost \d+\.\d+\.\d+: API 0\.9\.0, repo 11, node v\d+.*\nUpdates come through npm: /);
});

test("without a network, bitswap commands and their metrics are refused as in go-ipfs", async () => {
  const message = "this command must be run in online mode. Try running 'ipfs daemon' first";
  const calls = { "bitswap/stat": 400, "stats/bitswap": 400, "stats/bw?interval=x": 400 };
  for (const [call, status] of Object.entries(calls)) assert.deepEqual(await host.failure(call), [status, message]);
  for (const call of ["bitswap/wantlist", "bitswap/ledger?arg=x", "bitswap/reprovide", "stats/provide", "stats/dht"]) {
    assert.deepEqual(await host.failure(call), [500, message]);
  }
  assert.deepEqual(await host.failure("bitswap/ledger"), [400, 'argument "peer" is required\n']);
});
