import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import type { ConfigPath } from "#node/storage/repo/schema.ts";
import { someBlocks } from "../network/bitswap/support.ts";
import { provider } from "../network/http_retrieval/support.ts";
import { type RoutingNode, startNode, until } from "../network/kad/support.ts";
import { change } from "./support.ts";

const all = someBlocks(40, 1000);
const bytesOf = new Map(all.map(({ cid, bytes }) => [`/ipfs/${cid}?format=raw`, bytes]));
let active = 0;
let most = 0;

/** A gateway that has all blocks, and takes its time. */
const respond = ({ url = "" }: Pick<IncomingMessage, "url">, response: { end(bytes: Uint8Array): unknown }) => {
  active += 1;
  most = Math.max(most, active);
  setTimeout(() => {
    active -= 1;
    response.end(bytesOf.get(url) ?? new Uint8Array());
  }, 5);
};
const plain = createServer(respond);
let secure: ReturnType<typeof createSecureServer>;
let node: RoutingNode;
let address: string;
let secureAddress: string;

before(async () => {
  node = await startNode();
  plain.listen(0, "127.0.0.1");
  await once(plain, "listening");
  address = `/ip4/127.0.0.1/tcp/${(plain.address() as AddressInfo).port}/http`;
  const { certificate: cert, key } = await makeSelfSigned(["localhost"]);
  secure = createSecureServer({ cert, key }, respond);
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  secureAddress = `/ip4/127.0.0.1/tcp/${(secure.address() as AddressInfo).port}/tls/http`;
});
after(async () => {
  await node?.[Symbol.asyncDispose]();
  plain.closeAllConnections();
  plain.close();
  secure?.close();
});

const set = async (key: ConfigPath, value: unknown) => assert.deepEqual(await change(node.node, key, value), []);
const found = async (at = address) => (await node.network.httpSources.at(await provider(at))).length;

test("whether gateways are used at all, and which, goes by the config as it is written", async () => {
  assert.equal(await found(), 1);
  await set("HTTPRetrieval.Enabled", false);
  assert.equal(await found(), 0);
  assert.equal(node.network.httpSources.size, 0, "those in use are left");
  await set("HTTPRetrieval.Enabled", null);
  await set("HTTPRetrieval.Denylist", ["127.0.0.1"]);
  assert.equal(await found(), 0);
  await set("HTTPRetrieval.Denylist", null);
  await set("HTTPRetrieval.Allowlist", ["gateway.example"]);
  assert.equal(await found(), 0);
  await set("HTTPRetrieval.Allowlist", ["127.0.0.1"]);
  assert.equal(await found(), 1);
  await set("HTTPRetrieval.Allowlist", null);
});

test("certificates are not checked once it is said so, over HTTP/2", async () => {
  assert.equal(await found(secureAddress), 0);
  await set("HTTPRetrieval.TLSInsecureSkipVerify", true);
  assert.equal(await found(secureAddress), 1);
  await set("HTTPRetrieval.TLSInsecureSkipVerify", null);
});

test("the number of requests at a time and the size of blocks go by the config as it is written", async () => {
  const { network, node: lowLevel } = node;
  const record = await provider(address);
  network.bitswap.providers = {
    async *findProviderPeers() {
      yield record;
    },
  };
  await set("HTTPRetrieval.NumWorkers", 1);
  const first = all.slice(0, 20);
  most = 0;
  await Promise.all(first.map(({ cid }) => lowLevel.blocks.get(cid)));
  assert.equal(most, 1);
  await set("HTTPRetrieval.NumWorkers", null);
  await set("HTTPRetrieval.MaxBlockSize", "999B");
  const gone = new AbortController();
  const waiting = lowLevel.blocks.get((all[20] as (typeof all)[0]).cid, { signal: gone.signal });
  await until(() => network.httpSources.counts.fault > 0);
  gone.abort();
  await assert.rejects(waiting);
  await set("HTTPRetrieval.MaxBlockSize", "1000B");
  await lowLevel.blocks.get((all[21] as (typeof all)[0]).cid);
  assert.equal(network.bitswap.stat().blocksReceived, 21);
});
