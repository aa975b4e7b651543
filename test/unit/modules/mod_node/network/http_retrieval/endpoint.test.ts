import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointOf } from "#node/network/http_retrieval/endpoint.ts";
import { retrievalSettings } from "#node/network/http_retrieval/settings.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { isPublic } from "#node/network/swarm/public_ip.ts";

const origin = (address: string) => endpointOf(parseMultiaddr(address))?.origin;

test("multiaddrs that end in HTTP are origins of gateways", () => {
  assert.equal(origin("/dns4/gateway.example/tcp/443/tls/http"), "https://gateway.example:443");
  assert.equal(origin("/dns/Gateway.Example/tcp/8443/https"), "https://gateway.example:8443");
  assert.equal(origin("/ip4/192.0.2.1/tcp/80/http"), "http://192.0.2.1:80");
  assert.equal(origin("/ip6/2001:db8::1/tcp/443/tls/http"), "https://[2001:db8::1]:443");
  const id = "12D3KooWAnjC8bQeZrQCUHAbHGPtAaH4UMV3jVgpGUUbMfyjKPAC";
  assert.equal(origin(`/dns/a.example/tcp/443/tls/http/p2p/${id}`), "https://a.example:443");
  assert.deepEqual(endpointOf(parseMultiaddr("/ip4/192.0.2.1/tcp/443/tls/sni/a.example/http")), {
    origin: "https://a.example:443",
    name: "https://a.example:443 at 192.0.2.1",
    host: "a.example",
    ip: "192.0.2.1",
  });
});

test("other addresses, and names that would change the meaning of a URL, are not endpoints", () => {
  for (const address of [
    "/ip4/192.0.2.1/tcp/4001",
    "/ip4/192.0.2.1/tcp/443/tls/ws",
    "/ip4/192.0.2.1/udp/443/quic-v1",
    "/dns/a.example/tcp/443/tls",
    "/dns/a.example:80@b/tcp/443/tls/http",
    "/dns/a.example?x/tcp/443/tls/http",
    "/dns/-/tcp/443/tls/http",
    "/dnsaddr/a.example/tcp/443/tls/http",
  ])
    assert.equal(origin(address), undefined, address);
});

test("spellings that only URLs accept as an address are refused, and an address is not a certificate name", () => {
  for (const name of ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "a.0x7f", "1.2.3.256"])
    assert.equal(origin(`/dns/${name}/tcp/5001/http`), undefined, name);
  for (const sni of ["10.0.0.1", "127.1", "::1"])
    assert.equal(origin(`/ip4/8.8.8.8/tcp/443/tls/sni/${sni}/http`), undefined, sni);
});

test("local networks are not public, in whatever form they are written", () => {
  for (const ip of ["127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "::1", "::", "fe80::1", "fd00::1"])
    assert.ok(!isPublic(ip), ip);
  for (const ip of ["::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"])
    assert.ok(!isPublic(ip), ip);
  for (const ip of ["8.8.8.8", "2606:4700::1111", "172.15.0.1"]) assert.ok(isPublic(ip), ip);
});

const settingsOf = (values: Readonly<Record<string, unknown>>) =>
  retrievalSettings({ value: (path: string) => values[path] ?? null } as never);

test("the lists match hosts, allowed hosts may be anywhere, and a loopback-only node may use loopback", () => {
  const some = settingsOf({
    "HTTPRetrieval.Allowlist": ["A.example", "b.example"],
    "HTTPRetrieval.Denylist": ["b.example"],
    "Addresses.Swarm": ["/ip4/0.0.0.0/tcp/4001"],
  });
  assert.deepEqual([some.workers, some.maxBlockSize, some.enabled, some.insecure], [16, 2 ** 21, true, false]);
  assert.deepEqual(["a.example", "b.example", "c.example"].map(some.allows), [true, false, false]);
  assert.ok(some.mayDial("a.example", "10.0.0.1"));
  const open = settingsOf({ "Addresses.Swarm": ["/ip4/0.0.0.0/tcp/4001", "/ip4/127.0.0.1/tcp/4001"] });
  assert.ok(open.allows("c.example"));
  assert.ok(open.mayDial("c.example", "8.8.8.8"));
  assert.ok(!open.mayDial("c.example", "127.0.0.1"));
  const local = settingsOf({ "Addresses.Swarm": ["/ip4/127.0.0.1/tcp/0"] });
  assert.ok(local.mayDial("localhost", "127.0.0.1"));
  assert.ok(!local.mayDial("c.example", "10.0.0.1"));
});
