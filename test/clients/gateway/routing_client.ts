/**
 * `@helia/delegated-routing-v1-http-api-client`: requests the providers of a block, the addresses
 * of a peer, and records from the gateway.
 */
import assert from "node:assert/strict";
import { parsePeerId, peerIdEncoder } from "#node/index.ts";
import { fixtures } from "#test/contract/gateway/replay.ts";
import { provided, type RoutingPair } from "#test/unit/modules/mod_http_gateway/routing/pair.ts";
import type { GatewayLibraries, PeerRecord } from "./libraries.ts";

export async function* routingClient(
  { base36, CID, defaultLogger, delegatedRoutingV1HttpApiClient }: GatewayLibraries,
  { url, gatewayHost, other, otherId, address }: RoutingPair,
): AsyncGenerator<string, void, undefined> {
  const client = delegatedRoutingV1HttpApiClient({ url })({ logger: defaultLogger() });
  await client.start();
  try {
    const peer = CID.parse(peerIdEncoder("base36")(parsePeerId(otherId)), base36);
    const there = [{ id: String(peer), addresses: [address] }];
    const cid = CID.parse(await provided(other, "providers of the block"));
    assert.deepEqual(await found(client.getProviders(cid)), there);
    const filters = { filterAddrs: ["tcp", "!p2p-circuit"], filterProtocols: ["unknown", "transport-bitswap"] };
    assert.deepEqual(await found(client.getProviders(cid, filters)), there);
    assert.deepEqual(await found(client.getProviders(cid, { filterAddrs: ["wss"] })), []);
    assert.deepEqual(await found(client.getPeers(peer)), there);
    for (const key of [cid, peer]) assert.deepEqual(await found(client.getClosestPeers(key)), there);
    yield "providers, a peer and the closest peers are found, with filters";

    const gateway = `/ip4/127.0.0.1/tcp/${gatewayHost.http}/http`;
    const announced = encodeURIComponent(JSON.stringify([gateway]));
    await gatewayHost.call(`config?arg=Addresses.AppendAnnounce&arg=${announced}&json=true`);
    const block = CID.parse(await provided(gatewayHost, "this node is a provider, over HTTP as well"));
    const [record] = await found(client.getProviders(block));
    assert.equal(record?.addresses.at(-1), gateway);
    yield "the gateway of a node that announces the block is one, too";

    const name = CID.parse(fixtures.keys.one as string, base36);
    const signed = Buffer.from(fixtures.records.one as string, "base64");
    await assert.rejects(client.getIPNS(name), { name: "NotFoundError" });
    await client.putIPNS(name, signed);
    assert.deepEqual(Buffer.from(await client.getIPNS(name)), signed);
    yield "a record is stored and read";
  } finally {
    await client.stop();
  }
}

async function found(records: AsyncIterable<PeerRecord>) {
  const all = await Array.fromAsync(records);
  return all.map(({ ID, Addrs }) => ({ id: String(ID), addresses: Addrs.map(String) }));
}
