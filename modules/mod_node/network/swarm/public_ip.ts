/** Distinguishes public IP addresses from others. */
import { BlockList, isIPv4 } from "node:net";
import { privateRanges } from "../../storage/repo/defaults.ts";

/**
 * Ranges that are not public in addition to the private ones: loopback, this network, multicast,
 * and IPv4 in IPv6.
 */
const SPECIAL = [
  "/ip4/0.0.0.0/ipcidr/8",
  "/ip4/127.0.0.0/ipcidr/8",
  "/ip4/224.0.0.0/ipcidr/4",
  "/ip6/::/ipcidr/96",
  "/ip6/64:ff9b::/ipcidr/96",
  "/ip6/64:ff9b:1::/ipcidr/48",
  "/ip6/2002::/ipcidr/16",
  "/ip6/ff00::/ipcidr/8",
];

const inner = new BlockList();
for (const range of [...privateRanges, ...SPECIAL]) {
  const [, family, address, , bits] = range.split("/") as [string, string, string, string, string];
  inner.addSubnet(address, Number(bits), family === "ip4" ? "ipv4" : "ipv6");
}

/** Whether an address is publicly reachable and does not belong to a local network. */
export const isPublic = (ip: string): boolean => !inner.check(ip, isIPv4(ip) ? "ipv4" : "ipv6");

export const isLoopback = (ip: string): boolean => ip === "::1" || /^127\./.test(ip);
