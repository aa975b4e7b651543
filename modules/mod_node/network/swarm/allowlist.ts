/** The peers that the limits of all connections do not affect (`Swarm.ResourceMgr.Allowlist`). */
import { BlockList, isIP } from "node:net";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { failure } from "../../util/errors.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";

interface Entry {
  /** The range in the form that the library accepts: `/ip4/192.0.2.0/ipcidr/24`. */
  readonly range: string;
  readonly addresses: BlockList;
  /** Id of the only peer that is allowed; undefined allows every peer at such an address. */
  readonly peer: string | undefined;
}

export class Allowlist {
  readonly #entries: readonly Entry[];

  /**
   * @param texts `/ip4/ADDRESS` or `/ip6/ADDRESS`, then `/ipcidr/BITS`, `/p2p/ID`, or both @throws
   * NodeError
   */
  constructor(texts: readonly string[]) {
    this.#entries = texts.map(entryOf);
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  get ranges(): readonly string[] {
    return this.#entries.map(({ range }) => range);
  }

  /** Whether a peer at that address is allowed. */
  has(address: Multiaddr, peer: PeerId): boolean {
    const [{ name, value } = { name: "", value: "" }] = address.getComponents();
    const family = name === "ip6" ? "ipv6" : "ipv4";
    if (value === undefined || isIP(value) === 0) return false;
    const id = peer.toString();
    return this.#entries.some((each) => (each.peer ?? id) === id && each.addresses.check(value, family));
  }
}

function entryOf(text: string): Entry {
  const [, family, address = "", bits, id] =
    /^\/(ip[46])\/([^/]+)(?:\/ipcidr\/(\d{1,3}))?(?:\/p2p\/([^/]+))?$/.exec(text) ?? [];
  const version = isIP(address);
  const maxBits = version === 4 ? 32 : 128;
  if (family !== `ip${version}` || Number(bits ?? 0) > maxBits) throw invalid(text);
  const prefix = Number(bits ?? maxBits);
  const addresses = new BlockList();
  addresses.addSubnet(address, prefix, version === 4 ? "ipv4" : "ipv6");
  try {
    const range = parseMultiaddr(`/${family}/${address}/ipcidr/${prefix}`).toString();
    return { range, addresses, peer: id === undefined ? undefined : parsePeerId(id).toString() };
  } catch (cause) {
    throw invalid(text, cause);
  }
}

const invalid = (text: string, cause?: unknown) =>
  failure(
    "CONFIG_INVALID",
    { reason: `Swarm.ResourceMgr.Allowlist: ${text} is neither an IP address nor a range` },
    cause,
  );
