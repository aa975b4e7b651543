import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerRecord } from "modhost/node";
import { filterOf } from "#modules/mod_http_gateway/routing/filters.ts";

const tcp = "/ip4/192.0.2.1/tcp/4001";
const quic = "/ip4/192.0.2.1/udp/4001/quic-v1";
const relayed = "/ip4/192.0.2.2/tcp/4001/p2p/12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5/p2p-circuit";

const record = (Addrs: readonly string[], Protocols: readonly string[] = []): PeerRecord => ({
  Schema: "peer",
  ID: "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5",
  Addrs,
  Protocols,
});
const kept = (query: string, given: PeerRecord) => filterOf(new URLSearchParams(query))(given)?.Addrs;

test("an address stays if it has one of the protocols, and none of those that are refused", () => {
  const all = record([tcp, quic, relayed]);
  assert.deepEqual(kept("", all), [tcp, quic, relayed]);
  assert.deepEqual(kept("filter-addrs=TCP,!p2p-circuit", all), [tcp]);
  assert.deepEqual(kept("filter-addrs=tcp%2Cquic-v1", all), [tcp, quic, relayed]);
  assert.deepEqual(kept("filter-addrs=!tcp", all), [quic]);
});

test("a record of which no address stays is left out, and one without addresses is unknown", () => {
  assert.equal(kept("filter-addrs=ws", record([tcp])), undefined);
  assert.equal(kept("filter-addrs=tcp", record([])), undefined);
  assert.equal(kept("filter-addrs=!tcp", record([])), undefined);
  assert.deepEqual(kept("filter-addrs=ws,unknown", record([])), []);
  assert.equal(kept("filter-addrs=ws,unknown", record([tcp])), undefined);
});

test("a record that speaks one of the protocols stays as it is, and both filters count", () => {
  const bitswap = record([tcp, quic], ["transport-bitswap"]);
  assert.deepEqual(kept("filter-protocols=Transport-Bitswap,x", bitswap), [tcp, quic]);
  assert.equal(kept("filter-protocols=unknown", bitswap), undefined);
  assert.deepEqual(kept("filter-protocols=unknown", record([tcp])), [tcp]);
  assert.equal(kept("filter-protocols=x&filter-addrs=tcp", bitswap), undefined);
  assert.deepEqual(kept("filter-protocols=transport-bitswap&filter-addrs=quic-v1", bitswap), [quic]);
});
