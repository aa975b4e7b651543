/** Parses the lists of addresses and ranges in options. */
import { BlockList, isIP, SocketAddress } from "node:net";
import { ModhostError } from "../../util/errors.ts";

/**
 * Returns a function that checks whether an address is in a list of addresses and ranges such as
 * `10.0.0.0/8`.
 * @throws {ModhostError} OPTION_INVALID for any other entry, with the name of the option
 */
export function addressesOf(entries: readonly string[], option: string): (address: string) => boolean {
  const list = new BlockList();
  // A block list compares entries one by one, and lists of single addresses may have tens of
  // thousands.
  const single = new Set<string>();
  for (const entry of entries) {
    const [address = "", bits] = entry.split("/");
    const family = isIP(address);
    const width = bits === undefined ? undefined : Number(bits);
    if (family === 0 || (width !== undefined && !(/^\d+$/.test(bits ?? "") && width <= (family === 6 ? 128 : 32)))) {
      throw new ModhostError("OPTION_INVALID", {
        name: option,
        value: JSON.stringify(entry),
        allowed: 'each entry must be an address or a range such as "10.0.0.0/8"',
      });
    }
    const type = family === 6 ? "ipv6" : "ipv4";
    if (width === undefined && family === 4) single.add(address);
    else if (width === undefined) list.addAddress(address, type);
    else list.addSubnet(address, width, type);
  }
  return (address) => {
    const family = isIP(address);
    if (family === 0) return false;
    if (family === 4) return single.has(address) || list.check(address, "ipv4");
    return list.check(address, "ipv6") || (single.size > 0 && single.has(mappedAddress(address)));
  };
}

/**
 * The IPv4 address in an address such as `::ffff:10.0.0.1`, or `::ffff:a00:1`, which is the same.
 */
function mappedAddress(address: string): string {
  return new SocketAddress({ address, family: "ipv6" }).address.replace(/^::ffff:(?=\d+\.)/, "");
}
