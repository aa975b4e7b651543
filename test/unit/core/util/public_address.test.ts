import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { isPublicAddress } from "#core/util/public_address.ts";

test("addresses of the Internet are public", () => {
  for (const address of ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00::1"]) {
    assert.equal(isPublicAddress(address), true, address);
  }
});

test("addresses of this machine, of networks around it and of special ranges are not public", () => {
  const special = [
    "0.0.0.0",
    "10.255.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:1.1.1.1",
    "::ffff:7f00:1",
    "64:ff9b::1.1.1.1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fc00::1",
    "fe80::1",
    "ff02::1",
  ];
  for (const address of special) assert.equal(isPublicAddress(address), false, address);
});

test("the addresses of this machine's interfaces are not public", () => {
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  for (const { address } of own) assert.equal(isPublicAddress(address.replace(/%.*$/, "")), false, address);
});

test("text that is no address is not a public address", () => {
  for (const text of ["", "example.org", "1.1.1", "1.1.1.1.1", "0x7f.1", "[::1]", "1.1.1.1:80"]) {
    assert.equal(isPublicAddress(text), false, text);
  }
});
