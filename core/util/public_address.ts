/** Distinguishes addresses of the public Internet from all others. */
import { BlockList, isIP, isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * Ranges that are not public, from the special-purpose registries of IANA: this network, private,
 * shared, loopback, link-local, documentation, benchmarks, multicast and reserved. Ranges of IPv6
 * that contain IPv4 addresses are here as a whole, because the address inside may be any.
 */
const SPECIAL = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  ["::", 96],
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const;

/** A list for each version: the ranges of IPv6 that contain IPv4 addresses would match all of those. */
const special = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [address, bits] of SPECIAL) special[versionOf(address)].addSubnet(address, bits, versionOf(address));

/**
 * Whether an address belongs to the public Internet, and not to this machine or a network around
 * it. False for text that is no address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const version = versionOf(address);
  return !special[version].check(address, version) && !isOwnAddress(address);
}

function isOwnAddress(address: string): boolean {
  const own = new BlockList();
  for (const interfaces of Object.values(networkInterfaces())) {
    for (const each of interfaces ?? []) own.addAddress(each.address.replace(/%.*$/, ""), versionOf(each.address));
  }
  return own.check(address, versionOf(address));
}

function versionOf(address: string): "ipv4" | "ipv6" {
  return isIPv4(address) ? "ipv4" : "ipv6";
}
