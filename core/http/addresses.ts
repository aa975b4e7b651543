/** Lists of addresses and ranges, as options have them. */
import { BlockList, isIP } from "node:net";
import { ModhostError } from "../util/errors.ts";

/**
 * Tells which addresses a list has: of plain addresses and of ranges such as `10.0.0.0/8`.
 * @throws {ModhostError} OPTION_INVALID for any other entry, by the name of the option
 */
export function addressesOf(entries: readonly string[], option: string): (address: string) => boolean {
  const list = new BlockList();
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
    if (width === undefined) list.addAddress(address, type);
    else list.addSubnet(address, width, type);
  }
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 6 ? "ipv6" : "ipv4");
  };
}
