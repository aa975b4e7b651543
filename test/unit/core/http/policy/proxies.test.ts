import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addressesOf } from "#core/http/policy/addresses.ts";
import { plainAddress, TrustedProxies } from "#core/http/policy/proxies.ts";
import { rawExchange } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";

const headers = (fields: Record<string, string>) => Object.entries(fields).flat();

test("a list of addresses knows an IPv4 address in each form that IPv6 has for it, listed alone or in a range", () => {
  for (const list of [["10.0.0.1"], ["10.0.0.0/31"], ["192.0.2.1", "10.0.0.1", "2001:db8::1"]]) {
    const has = addressesOf(list, "option");
    for (const same of ["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:10.0.0.1", "::ffff:a00:1", "0:0:0:0:0:ffff:a00:1"])
      assert.equal(has(same), true, `${same} in ${list}`);
    for (const other of ["10.0.0.2", "::ffff:10.0.0.2", "::10.0.0.1", "::a00:1", "", "10.0.0.1 "])
      assert.equal(has(other), false, `${other} in ${list}`);
  }
  assert.equal(addressesOf(["2001:db8::1"], "option")("2001:DB8:0::1"), true);
});

describe("trusted proxies", () => {
  const proxies = new TrustedProxies(["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);

  test("a direct client's address is its own, whatever it sends", () => {
    const forged = headers({ "x-forwarded-for": "1.2.3.4", "x-forwarded-proto": "https" });
    assert.deepEqual(proxies.client("203.0.113.7", false, forged), {
      ip: "203.0.113.7",
      secure: false,
      host: undefined,
      isProxied: false,
    });
  });

  test("behind a trusted proxy the last address that is not trusted counts", () => {
    const chain = headers({ "x-forwarded-for": "6.6.6.6, 203.0.113.7, 10.1.1.1" });
    assert.equal(proxies.client("127.0.0.1", false, chain).ip, "203.0.113.7");
  });

  test("a text that is not an address ends the chain", () => {
    assert.equal(
      proxies.client("127.0.0.1", false, headers({ "x-forwarded-for": "203.0.113.7, evil" })).ip,
      "127.0.0.1",
    );
  });

  test("addresses mapped into IPv6, in brackets and with ports are understood", () => {
    assert.equal(
      proxies.client("::ffff:127.0.0.1", false, headers({ "x-forwarded-for": "[2001:db8::1]:443" })).ip,
      "2001:db8::1",
    );
    assert.equal(
      proxies.client("fd00::1", false, headers({ "x-forwarded-for": "203.0.113.7:5000" })).ip,
      "203.0.113.7",
    );
    assert.equal(plainAddress("fe80::1%eth0"), "fe80::1");
    for (const mapped of [
      "::ffff:192.0.2.1",
      "::FFFF:c000:201",
      "0:0:0:0:0:ffff:192.0.2.1",
      "[::ffff:c000:0201]:80",
      "0000::ffff:c000:201",
    ])
      assert.equal(plainAddress(mapped), "192.0.2.1", mapped);
    for (const other of ["2001:db8::ffff:c000:201", "::ffff:1", "ffff::", "ffff"])
      assert.equal(plainAddress(other), other);
  });

  test("the protocol comes from the proxy", () => {
    assert.equal(proxies.client("127.0.0.1", false, headers({ "x-forwarded-proto": "https" })).secure, true);
    assert.equal(proxies.client("127.0.0.1", true, headers({ "x-forwarded-proto": "http" })).secure, false);
    assert.equal(proxies.client("127.0.0.1", true, headers({})).secure, true);
  });

  test("the protocol of a websocket, ws or wss, counts as that of the page", () => {
    const modern = new TrustedProxies(["127.0.0.1"], false);
    for (const [proto, secure] of [
      ["wss", true],
      ["WSS", true],
      ["ws", false],
      ["wsss", false],
    ] as const) {
      assert.equal(proxies.client("127.0.0.1", !secure, headers({ "x-forwarded-proto": proto })).secure, secure, proto);
      const forwarded = `for=192.0.2.1;proto="${proto}"`;
      assert.equal(modern.client("127.0.0.1", !secure, headers({ forwarded })).secure, secure, forwarded);
    }
  });

  test("the Forwarded header is read instead, when so configured", () => {
    const modern = new TrustedProxies(["127.0.0.1"], false);
    const fields = headers({
      Forwarded: 'for=6.6.6.6;host=a.test, for="[2001:db8::9]:80";proto=https;Host="b.test:8443"',
      "x-forwarded-for": "9.9.9.9",
    });
    assert.deepEqual(modern.client("127.0.0.1", false, fields), {
      ip: "2001:db8::9",
      secure: true,
      host: "b.test:8443",
      isProxied: true,
    });
  });

  test("a quoted value in Forwarded is one value, and a client's quote does not reach into what proxies add", () => {
    const modern = new TrustedProxies(["127.0.0.1"], false);
    const requested = (forwarded: string) => modern.client("127.0.0.1", false, headers({ forwarded }));
    // A proxy that reports the host as the client has sent it.
    for (const host of ["a,for=6.6.6.6;x", "a;for=6.6.6.6;x", 'a\\",for=6.6.6.6;x', "a\\\\"]) {
      const found = requested(`for=192.0.2.1;host="${host}"`);
      assert.deepEqual([found.ip, found.host], ["192.0.2.1", host]);
    }
    for (const sent of ['for="6.6.6.6', 'for="', '"', 'for=6.6.6.6;host="a'])
      for (const added of ["for=192.0.2.1", 'for=192.0.2.1;host="b.test"', 'host="b.test";for="192.0.2.1:80"'])
        assert.equal(requested(`${sent}, ${added}`).ip, "192.0.2.1", `${sent}, ${added}`);
  });

  test("the host is that of the nearest proxy in X-Forwarded-Host, of the farthest that is trusted in Forwarded", () => {
    const modern = new TrustedProxies(["127.0.0.1", "10.0.0.0/8"], false);
    const host = (by: TrustedProxies, fields: Record<string, string>) =>
      by.client("127.0.0.1", false, headers(fields)).host;
    assert.equal(host(proxies, { "X-Forwarded-Host": "a.test, b.test" }), "b.test");
    assert.equal(host(proxies, { forwarded: "for=192.0.2.1;host=a.test" }), undefined);
    const chain = "for=6.6.6.6;host=lie.test, for=192.0.2.1;host=a.test, for=10.1.1.1;host=b.test";
    assert.equal(host(modern, { forwarded: chain, "x-forwarded-host": "c.test" }), "a.test");
    assert.equal(modern.client("192.0.2.9", false, headers({ forwarded: chain })).host, undefined);
  });

  test("an entry that is not an address or a range is refused by name", () => {
    for (const entry of ["localhost", "10.0.0.0/40", "::1/129", "10.0.0.0/x", ""]) {
      assert.throws(() => new TrustedProxies([entry]), { code: "OPTION_INVALID", message: /trusted_proxies/ }, entry);
    }
  });
});

test("a header in another spelling is ignored", async () => {
  await using host = await TestService.start(
    { route: { "GET /": ({ request }) => `${request.ip} ${request.secure}` } },
    { trustedProxies: ["127.0.0.1"] },
  );
  const fields = "X-Forwarded-For: 192.0.2.7\r\nX_Forwarded_For: 6.6.6.6\r\nX_Forwarded_Proto: https\r\n";
  const request = `GET /app/ HTTP/1.1\r\nHost: a\r\n${fields}Connection: close\r\n\r\n`;
  assert.match(await rawExchange(host.port, request), /\r\n\r\n192\.0\.2\.7 false$/);
});
