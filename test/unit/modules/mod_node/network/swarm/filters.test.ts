import assert from "node:assert/strict";
import { test } from "node:test";
import { addressMatcher, Filters } from "#node/network/swarm/filters.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";

const blocks = (filters: Filters, text: string) => filters.blocks(parseMultiaddr(text));

test("ranges are listed normalized, in order, without duplicates", () => {
  const filters = new Filters();
  for (const text of [
    "/ip4/192.0.2.7/ipcidr/24",
    "/ip6/2001:DB8:0:1::5/ipcidr/48",
    "/ip4/192.0.2.9/ipcidr/24",
    "/ip4/10.1.2.3/ipcidr/9",
    "/ip4/1.2.3.4/ipcidr/0",
  ]) {
    filters.add(text);
  }
  assert.deepEqual(filters.list(), [
    "/ip4/192.0.2.0/ipcidr/24",
    "/ip6/2001:db8::/ipcidr/48",
    "/ip4/10.0.0.0/ipcidr/9",
    "/ip4/0.0.0.0/ipcidr/0",
  ]);
});

test("an address is blocked while a range contains it", () => {
  const filters = new Filters();
  filters.add("/ip4/192.0.2.0/ipcidr/24");
  filters.add("/ip6/2001:db8::/ipcidr/32");
  assert.equal(blocks(filters, "/ip4/192.0.2.200/tcp/1"), true);
  assert.equal(blocks(filters, "/ip4/192.0.3.1/tcp/1"), false);
  assert.equal(blocks(filters, "/ip6/2001:db8:7::1/udp/1/quic-v1"), true);
  assert.equal(blocks(filters, "/dns4/localhost/tcp/1"), false);
  filters.remove("/ip4/192.0.2.99/ipcidr/24");
  assert.equal(blocks(filters, "/ip4/192.0.2.200/tcp/1"), false);
  assert.equal(blocks(filters, "/ip6/2001:db8:7::1/tcp/1"), true);
  filters.clear();
  assert.equal(blocks(filters, "/ip6/2001:db8:7::1/tcp/1"), false);
});

test("a host name is blocked when it resolves to a blocked address", async () => {
  const filters = new Filters();
  filters.add("/ip4/127.0.0.0/ipcidr/8");
  filters.add("/ip6/::1/ipcidr/128");
  assert.equal(await filters.blocksDial(parseMultiaddr("/dns/localhost/tcp/1")), true);
  assert.equal(await filters.blocksDial(parseMultiaddr("/ip4/192.0.2.1/tcp/1")), false);
});

test("an invalid range is refused", () => {
  const filters = new Filters();
  for (const text of [
    "x",
    "/ip4/192.0.2.0/tcp/24",
    "/ip4/192.0.2.0/ipcidr",
    "/dns4/x/ipcidr/8",
    "/ip4/1.1.1.1/ipcidr/8/x",
  ]) {
    assert.throws(() => filters.add(text), { message: "invalid multiaddr-filter format" });
  }
  assert.throws(() => filters.add("/ip4/1.2.3.4/ipcidr/33"), { message: "invalid CIDR address: 1.2.3.4/33" });
  assert.throws(() => filters.add("/ip4/1.2.3/ipcidr/8"), { message: "invalid CIDR address: 1.2.3/8" });
  assert.deepEqual(filters.list(), []);
});

test("hidden addresses are given as addresses or ranges", () => {
  const hidden = addressMatcher(["/ip4/127.0.0.1/tcp/4001", "/ip4/10.0.0.0/ipcidr/8"]);
  assert.equal(hidden(parseMultiaddr("/ip4/127.0.0.1/tcp/4001")), true);
  assert.equal(hidden(parseMultiaddr("/ip4/127.0.0.1/tcp/4002")), false);
  assert.equal(hidden(parseMultiaddr("/ip4/10.9.9.9/tcp/1/ws")), true);
});

test("replaced ranges that existed before keep their positions, whatever order the configuration has", () => {
  const filters = new Filters();
  const [a, b, c] = ["/ip4/192.0.2.0/ipcidr/24", "/ip4/198.51.100.0/ipcidr/24", "/ip4/10.0.0.0/ipcidr/8"] as const;
  for (const text of [a, b]) filters.add(text);
  filters.replace([b, c, "/ip4/192.0.2.7/ipcidr/24"]);
  assert.deepEqual(filters.list(), [a, b, c]);
  filters.replace([c, b]);
  assert.deepEqual(filters.list(), [b, c]);
  assert.equal(blocks(filters, "/ip4/192.0.2.1/tcp/1"), false);
  assert.equal(blocks(filters, "/ip4/10.0.0.1/tcp/1"), true);
});
