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
const matching = (query: string, given: PeerRecord) => filterOf(new URLSearchParams(query))(given)?.Addrs;

test("an address matches if it contains one of the protocols and none of the excluded ones", () => {
  const all = record([tcp, quic, relayed]);
  assert.deepEqual(matching("", all), [tcp, quic, relayed]);
  assert.deepEqual(matching("filter-addrs=TCP,!p2p-circuit", all), [tcp]);
  assert.deepEqual(matching("filter-addrs=tcp%2Cquic-v1", all), [tcp, quic, relayed]);
  assert.deepEqual(matching("filter-addrs=!tcp", all), [quic]);
});

test("a record is dropped if none of its addresses match, and a record without addresses matches unknown", () => {
  assert.equal(matching("filter-addrs=ws", record([tcp])), undefined);
  assert.equal(matching("filter-addrs=tcp", record([])), undefined);
  assert.equal(matching("filter-addrs=!tcp", record([])), undefined);
  assert.deepEqual(matching("filter-addrs=ws,unknown", record([])), []);
  assert.equal(matching("filter-addrs=ws,unknown", record([tcp])), undefined);
});

test("a record matches if it has one of the protocols, and both filters apply", () => {
  const bitswap = record([tcp, quic], ["transport-bitswap"]);
  assert.deepEqual(matching("filter-protocols=Transport-Bitswap,x", bitswap), [tcp, quic]);
  assert.equal(matching("filter-protocols=unknown", bitswap), undefined);
  assert.deepEqual(matching("filter-protocols=unknown", record([tcp])), [tcp]);
  assert.equal(matching("filter-protocols=x&filter-addrs=tcp", bitswap), undefined);
  assert.deepEqual(matching("filter-protocols=transport-bitswap&filter-addrs=quic-v1", bitswap), [quic]);
});
