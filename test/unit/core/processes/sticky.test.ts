/** The choice of the process that serves one client. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { TrustedProxies } from "#core/http/policy/proxies.ts";
import { idFor, processFor, processForAddress, STICKY_COOKIE, StickyClients } from "#core/processes/sticky.ts";
import type { NodeRequest, NodeResponse } from "#core/util/node_messages.ts";

const nothing = { everything: false, exact: [], below: [] };
const below = (path: string) => ({ ...nothing, below: [path] });
const proxies = new TrustedProxies(["10.0.0.0/8"]);

function request(remoteAddress: string, ...rawHeaders: string[]): NodeRequest {
  return { socket: { remoteAddress } as Socket, rawHeaders } as NodeRequest;
}

function clients(own: number, count: number) {
  const made = new StickyClients(own, count);
  made.use({ address: below("/cart"), cookie: below("/shop") });
  return made;
}

test("addresses are spread over all processes, and no number is out of range", () => {
  const counts = [0, 0, 0];
  for (let at = 0; at < 3000; at += 1) {
    const number = processForAddress(`192.0.${at >> 8}.${at & 255}`, 3);
    counts[number - 1] = (counts[number - 1] as number) + 1;
  }
  assert.equal(
    counts.reduce((sum, count) => sum + count),
    3000,
  );
  for (const count of counts) assert.ok(count > 800, String(counts));
  assert.equal(processForAddress("2001:db8:1:2::1", 7), processForAddress("2001:db8:1:2:ffff:1:2:3", 7));
});

test("the address is that of the client behind trusted proxies, and no other header counts", () => {
  const sticky = clients(1, 50);
  const of = (peer: string, forwarded: string) =>
    sticky.processFor("/cart/add", request(peer, "X-Forwarded-For", forwarded), proxies);
  assert.equal(of("10.0.0.1", "192.0.2.7"), processForAddress("192.0.2.7", 50));
  assert.equal(of("198.51.100.1", "192.0.2.7"), processForAddress("198.51.100.1", 50));
  assert.equal(sticky.processFor("/other", request("198.51.100.1"), proxies), undefined);
});

test("a connection of a client goes to its process as a whole, and one of a proxy does not", () => {
  const sticky = clients(1, 50);
  const of = (remoteAddress: string, path = "/cart") =>
    sticky.processForConnection(path, { remoteAddress } as Socket, proxies);
  assert.equal(of("198.51.100.1"), processForAddress("198.51.100.1", 50));
  assert.equal(of("10.0.0.1"), undefined);
  assert.equal(of("198.51.100.1", "/shop"), undefined);
});

test("a client without a cookie gets one that leads back to the process that serves it", () => {
  const sticky = clients(3, 4);
  const set: string[] = [];
  const response = { setHeader: (_name: string, value: string) => set.push(value) } as unknown as NodeResponse;
  assert.equal(sticky.processFor("/shop", request("198.51.100.1"), proxies), undefined);
  sticky.welcome("/shop", request("198.51.100.1"), response, proxies);
  sticky.welcome("/cart", request("198.51.100.1"), response, proxies);
  sticky.welcome("/shop", request("10.0.0.1", "X-Forwarded-Proto", "https"), response, proxies);
  assert.equal(set.length, 2);
  const [plain = "", secure = ""] = set;
  assert.match(plain, /^modhost_process=[0-9a-f]{16}; Path=\/; HttpOnly; SameSite=Lax$/);
  assert.match(secure, /; Secure$/);
  const back = request("203.0.113.9", "Cookie", `a=b; ${plain.split(";")[0]}; c=d`);
  assert.equal(sticky.processFor("/shop/1", back, proxies), 3);
  sticky.welcome("/shop", back, response, proxies);
  assert.equal(set.length, 2);
});

test("a forged cookie leads to some process, or counts as none", () => {
  const sticky = clients(1, 2);
  const of = (value: string) =>
    sticky.processFor("/shop", request("::1", "Cookie", `${STICKY_COOKIE}=${value}`), proxies);
  assert.equal(of("00000000000000ff"), processFor("00000000000000ff", 2));
  for (const value of ["2", "", "99999999", "x".repeat(8000), "0".repeat(17), "-000000000000001"])
    assert.equal(of(value), undefined, value);
  for (let number = 1; number <= 16; number += 1) assert.equal(processFor(idFor(number, 16), 16), number);
});
