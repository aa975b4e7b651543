import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcHost, startOnline } from "../commands/support.ts";

let host: RpcHost;
before(async () => {
  host = await startOnline();
});
after(() => host?.stop());

const set = async (key: string, value: unknown) => {
  const { status, text } = await host.call(
    `config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`,
  );
  assert.equal(status, 200, text);
};

test("p2p is available with Experimental.Libp2pStreamMounting", async () => {
  assert.match(String((await host.failure("p2p/ls"))[1]), /libp2p stream mounting not enabled/);
  await set("Experimental.Libp2pStreamMounting", true);
  assert.equal((await host.call("p2p/ls")).status, 200);
  await set("Experimental.Libp2pStreamMounting", false);
  assert.match(String((await host.failure("p2p/ls"))[1]), /libp2p stream mounting not enabled/);
});

test("stats/provide is available with Experimental.AcceleratedDHTClient", async () => {
  assert.notEqual((await host.call("stats/provide")).status, 200);
  await set("Experimental.AcceleratedDHTClient", true);
  assert.equal((await host.call("stats/provide")).status, 200);
  await set("Experimental.AcceleratedDHTClient", false);
  assert.notEqual((await host.call("stats/provide")).status, 200);
});

test("mount uses the folders of Mounts.IPFS and Mounts.IPNS", async () => {
  await set("Mounts.IPFS", "/nowhere/one");
  assert.match(String((await host.failure("mount"))[1]), /\/nowhere\/one/);
  await set("Mounts.IPFS", host.folder);
  await set("Mounts.IPNS", "/nowhere/two");
  assert.match(String((await host.failure("mount"))[1]), /\/nowhere\/two/);
});
