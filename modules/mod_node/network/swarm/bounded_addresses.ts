import type { Address, PeerData, PeerId, PeerStore } from "@libp2p/interface";
import type { Multiaddr } from "@multiformats/multiaddr";

/** Addresses and protocols that are remembered of one peer. */
const usual = 128;
const mostProtocols = 256;

/**
 * However many addresses are told of a peer, by itself or by others and in how many messages: so many are kept. Those
 * that the peer has signed come first, then the ones that it is told of now, then others that were known. Of the
 * protocols it is the first ones.
 */
export function limitStoredAddresses(store: PeerStore, most = usual): void {
  const { merge, patch, save } = store;
  const few = (data: PeerData): PeerData => ({
    ...data,
    ...(data.addresses === undefined ? {} : { addresses: data.addresses.slice(0, most) }),
    ...(data.multiaddrs === undefined ? {} : { multiaddrs: data.multiaddrs.slice(0, most) }),
    ...(data.protocols === undefined ? {} : { protocols: data.protocols.slice(0, mostProtocols) }),
  });
  store.patch = (id, data, options) => patch.call(store, id, few(data), options);
  store.save = (id, data, options) => save.call(store, id, few(data), options);
  store.merge = async (id, data, options) => {
    const merged = await merge.call(store, id, few(data), options);
    if (merged.addresses.length <= most) return merged;
    const given = [...(data.multiaddrs ?? []), ...(data.addresses ?? []).map(({ multiaddr }) => multiaddr)];
    return patch.call(store, id, { addresses: chosen(id, merged.addresses, given).slice(0, most) }, options);
  };
}

/** The store keeps them sorted as texts: their order tells nothing. */
function chosen(id: PeerId, all: readonly Address[], given: readonly Multiaddr[]): Address[] {
  // The store leaves out the peer's own id at the end of an address.
  const own = `/p2p/${id}`;
  const told = new Set(given.map((address) => withoutEnd(`${address}`, own)));
  const rank = ({ isCertified, multiaddr }: Address) =>
    isCertified ? 0 : told.has(withoutEnd(`${multiaddr}`, own)) ? 1 : 2;
  return all.toSorted((one, other) => rank(one) - rank(other));
}

const withoutEnd = (text: string, end: string) => (text.endsWith(end) ? text.slice(0, -end.length) : text);
