import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, byPeer, parseMultiaddr, splitPeer, transportOf } from "#node/network/swarm/multiaddr.ts";

const id = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";

test("addresses are normalized", () => {
  const forms = {
    [`/ip4/1.2.3.4/tcp/1/ipfs/${id}/`]: `/ip4/1.2.3.4/tcp/1/p2p/${id}`,
    "/p2p/bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe":
      "/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N",
    "/ip6/2001:DB8::0:1/udp/4001/quic": "/ip6/2001:db8::1/udp/4001/quic",
    "/ip4/1.2.3.4/tcp/0443/ws": "/ip4/1.2.3.4/tcp/443/ws",
    "/dnsaddr/example.org": "/dnsaddr/example.org",
    "/ip4/1.2.3.4/tcp/4/p2p-circuit": "/ip4/1.2.3.4/tcp/4/p2p-circuit",
  };
  for (const [text, form] of Object.entries(forms)) assert.equal(parseMultiaddr(text).toString(), form);
});

test("the path of a socket is written as it was read, as go-ipfs does", () => {
  for (const text of ["/unix/tmp/a.sock", "/unix//tmp/a", "/unix/%2Ftmp%2Fa", "/unix/tmp/a b", "/ip4/1.2.3.4/unix/a"]) {
    const address = parseMultiaddr(text);
    assert.equal(addressText(address), text);
    assert.equal(address.getComponents().at(-1)?.value, text.replace(/^.*?\/unix/, ""));
  }
  assert.equal(addressText(parseMultiaddr("/ip4/1.2.3.4/tcp/1")), "/ip4/1.2.3.4/tcp/1");
});

test("invalid addresses are refused in the words of go-ipfs", () => {
  const reasons = {
    x: "must begin with /",
    "": "empty multiaddr",
    "/": "empty multiaddr",
    "/ip4/": "unexpected end of multiaddr",
    "/ip4/1.2.3": 'invalid value "1.2.3" for protocol ip4: failed to parse ip4 addr: 1.2.3',
    "/ip6/zz/tcp/1": 'invalid value "zz" for protocol ip6: failed to parse ip6 addr: zz',
    "/ip4/1.2.3.4/tcp": "unexpected end of multiaddr",
    "/ip4/1.2.3.4/tcp/x":
      'invalid value "x" for protocol tcp: failed to parse port addr: strconv.Atoi: parsing "x": invalid syntax',
    "/ip4/1.2.3.4/tcp/99999": 'invalid value "99999" for protocol tcp: failed to parse port addr: greater than 65536',
    "/foo/1": "unknown protocol foo",
  };
  for (const [text, reason] of Object.entries(reasons)) {
    const shown = text.replace(/\/+$/, "");
    assert.throws(() => parseMultiaddr(text), {
      message: `failed to parse multiaddr ${JSON.stringify(shown)}: ${reason}`,
    });
  }
  assert.throws(
    () => parseMultiaddr("/ip4/1.2.3.4/tcp/1/p2p/QmBad"),
    /for protocol p2p: failed to parse p2p addr: QmBad /,
  );
});

test("an address is separated from the id of its peer", () => {
  const { id: peer, address } = splitPeer(parseMultiaddr(`/ip4/1.2.3.4/tcp/1/p2p/${id}`));
  assert.deepEqual([peer.toString(), address?.toString()], [id, "/ip4/1.2.3.4/tcp/1"]);
  assert.equal(splitPeer(parseMultiaddr(`/p2p/${id}`)).address, undefined);
  assert.throws(() => splitPeer(parseMultiaddr("/ip4/1.2.3.4/tcp/1")), { message: "invalid p2p multiaddr" });
  assert.equal(transportOf(parseMultiaddr("/ip4/1.2.3.4/tcp/1")).toString(), "/ip4/1.2.3.4/tcp/1");
});

test("addresses are grouped by peer", () => {
  const other = "12D3KooWE15XmWGD8H4eYXvD96ddfnHuZjJW4g8rnz7z7ZJupkUb";
  const texts = [`/ip4/1.1.1.1/tcp/1/p2p/${id}`, `/p2p/${other}`, `/ip4/2.2.2.2/tcp/2/p2p/${id}`];
  const groups = byPeer(texts.map((text) => splitPeer(parseMultiaddr(text))));
  assert.deepEqual(
    groups.map((group) => [group.id.toString(), group.addresses.map(String)]),
    [
      [id, ["/ip4/1.1.1.1/tcp/1", "/ip4/2.2.2.2/tcp/2"]],
      [other, []],
    ],
  );
});
