/** Address ranges that are neither dialled nor accepted (`Swarm.AddrFilters`). */
import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv4 } from "node:net";
import { multiaddr } from "@multiformats/multiaddr";
import { failure } from "../../util/errors.ts";
import type { Multiaddr } from "./multiaddr.ts";

/** A range, with its host bits cleared. */
interface Mask {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Parses `/ip4/1.2.3.4/ipcidr/24`. @throws NodeError with go-ipfs's texts */
function parseMask(text: string): Mask {
  const [before, family = "", address = "", ipcidr, bits, ...more] = text.split("/");
  if (before !== "" || !/^ip[46]$/.test(family) || ipcidr !== "ipcidr" || bits === undefined || more.length > 0) {
    throw failure("ADDRESS_INVALID", { reason: "invalid multiaddr-filter format" });
  }
  const version = isIP(address);
  const maxPrefix = version === 4 ? 32 : 128;
  if (version === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > maxPrefix) {
    throw failure("ADDRESS_INVALID", { reason: `invalid CIDR address: ${address}/${bits}` });
  }
  const prefix = Number(bits);
  return { address: cleared(address, prefix), prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

function cleared(address: string, prefix: number): string {
  const bytes = multiaddr(`/ip${isIPv4(address) ? 4 : 6}/${address}`).bytes.slice();
  // The first byte names the family.
  for (let bit = prefix; bit < (bytes.length - 1) * 8; bit++) {
    const at = 1 + (bit >> 3);
    bytes[at] = (bytes[at] as number) & ~(0x80 >> (bit & 7));
  }
  return multiaddr(bytes).getComponents()[0]?.value as string;
}

const textOf = ({ address, prefix, family }: Mask) => `/ip${family === "ipv4" ? 4 : 6}/${address}/ipcidr/${prefix}`;

/** A set of ranges, in the order in which they were added. */
export class Filters {
  readonly #masks = new Map<string, Mask>();
  #list = new BlockList();

  /** @throws NodeError for a text that is not a range */
  add(text: string): void {
    const mask = parseMask(text);
    this.#masks.set(textOf(mask), mask);
    this.#list.addSubnet(mask.address, mask.prefix, mask.family);
  }

  /** @throws NodeError for a text that is not a range */
  remove(text: string): void {
    if (this.#masks.delete(textOf(parseMask(text)))) this.#rebuild();
  }

  /**
   * Replaces all ranges; those that exist already keep their positions. @throws NodeError for a
   * text that is not a range; the previous ranges then stay in effect
   */
  replace(texts: readonly string[]): void {
    const wanted = new Map(texts.map(parseMask).map((mask) => [textOf(mask), mask]));
    for (const text of this.#masks.keys()) if (!wanted.has(text)) this.#masks.delete(text);
    for (const [text, mask] of wanted) this.#masks.set(text, mask);
    this.#rebuild();
  }

  clear(): void {
    this.#masks.clear();
    this.#rebuild();
  }

  #rebuild(): void {
    this.#list = new BlockList();
    for (const { address, prefix, family } of this.#masks.values()) this.#list.addSubnet(address, prefix, family);
  }

  /** Returns the ranges as normalized texts. */
  list(): readonly string[] {
    return [...this.#masks.keys()];
  }

  /** Whether the IP address of a multiaddr is in one of the ranges. */
  blocks(address: Multiaddr): boolean {
    if (this.#masks.size === 0) return false;
    const host = address.getComponents().find(({ name }) => name === "ip4" || name === "ip6");
    return host?.value !== undefined && this.blocksHost(host.value);
  }

  /** Like `blocks`, but also checks the addresses that a host name resolves to. */
  async blocksDial(address: Multiaddr): Promise<boolean> {
    if (this.#masks.size === 0) return false;
    const first = address.getComponents()[0];
    if (first?.value === undefined || !/^dns[46]?$/.test(first.name)) return this.blocks(address);
    const found = await lookup(first.value, { all: true }).catch(() => []);
    return found.some((each) => this.blocksHost(each.address));
  }

  /** Whether an IP address is in one of the ranges. */
  blocksHost(host: string): boolean {
    return this.#list.check(host, isIPv4(host) ? "ipv4" : "ipv6");
  }
}

/**
 * Returns a function that matches the given addresses and ranges, as in `Addresses.NoAnnounce`.
 * @throws NodeError for a text that is neither
 */
export function addressMatcher(texts: readonly string[]): (address: Multiaddr) => boolean {
  const ranges = new Filters();
  const exact = new Set<string>();
  for (const text of texts) {
    if (text.includes("/ipcidr/")) ranges.add(text);
    else exact.add(multiaddr(text).toString());
  }
  return (address) => exact.has(address.toString()) || ranges.blocks(address);
}
