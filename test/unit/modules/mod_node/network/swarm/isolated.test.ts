/** Runs tests that would leave the loopback interface in network namespaces of their own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isolated, loopback, noIsolation } from "#test/support/isolated.ts";

const run = (name: string, setup?: readonly string[]) =>
  isolated(new URL(`isolated/${name}.ts`, import.meta.url), setup);
const skip = noIsolation;

test("peers on one local network find each other, except one with discovery off", { skip }, async () => {
  const multicast = "udp 0.0.0.0:5353";
  assert.deepEqual(await run("discovery", [loopback]), {
    before: [],
    found: true,
    during: [multicast, multicast],
    connected: [1, 1, 0],
    after: [],
  });
});

test("a port is mapped at the gateway, unless that is off, and announced once a peer has dialled it", {
  skip,
}, async () => {
  const home = [
    loopback,
    "ip link add home type veth peer name wall",
    "ip addr add 192.168.77.2/24 dev home",
    "ip link set home up",
    "ip link set wall up",
    "ip route add 224.0.0.0/4 dev home",
    // The gateway as the outside sees it, and a peer outside, which is reached through it.
    "ip addr add 8.8.4.4/32 dev lo",
    "ip addr add 1.0.0.1/32 dev lo",
    "ip route replace table local local 1.0.0.1 dev lo src 8.8.4.4",
  ];
  assert.deepEqual(await run("home", home), {
    sockets: ["udp 239.255.255.250:1900"],
    unproven: false,
    proven: true,
    joined: true,
    requests: ["search", "GetExternalIPAddress", "AddAnyPortMapping PORT", "DeletePortMapping"],
  });
});

for (const [network, setup] of [
  ["any interface", []],
  ["a network", [loopback]],
] as const) {
  test(`on a machine without ${network} a node goes online without warnings, whatever it is configured to search for`, {
    skip,
  }, async () => {
    const { reported, notices, dialled, connected } = (await run("nowhere", setup)) as Record<string, unknown>;
    assert.deepEqual(reported, []);
    assert.deepEqual(
      notices,
      ["/ip4/0.0.0.0/udp/4001/quic", "/ip6/::/udp/4001/quic"].map(
        (address) => `${address} is not listened on: draft-29 QUIC is not supported`,
      ),
    );
    assert.ok(Number(dialled) <= 4, `${dialled} peers were dialled`);
    assert.equal(connected, 0);
  });
}
