/**
 * Limits the data that the peer store has of one peer. The store accepts every address that anybody
 * reports for a peer, in any number of messages, and stores each for a day.
 */
import type { Address, PeerData, PeerId, PeerStore } from "@libp2p/interface";
import type { Multiaddr } from "@multiformats/multiaddr";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "the number of stored addresses per peer is not limited",
};

/** Maximum numbers per peer. */
const MAX_ADDRESSES = 128;
const MAX_PROTOCOLS = 256;

/**
 * Limits the addresses of each peer: those that the peer has signed come first, then those that
 * were just reported, then older ones. Only the first protocols are stored.
 */
export function limitStoredAddresses(store: PeerStore, notices: PatchNotices, maxAddresses = MAX_ADDRESSES): void {
  const { merge, patch: patchPeer, save }: Partial<PeerStore> = store;
  const parts = { "peerStore.merge": merge, "peerStore.patch": patchPeer, "peerStore.save": save };
  if (merge === undefined || patchPeer === undefined || save === undefined) {
    notices.isApplicable(patch, parts);
    return;
  }
  const limited = (data: PeerData): PeerData => ({
    ...data,
    ...(data.addresses === undefined ? {} : { addresses: data.addresses.slice(0, maxAddresses) }),
    ...(data.multiaddrs === undefined ? {} : { multiaddrs: data.multiaddrs.slice(0, maxAddresses) }),
    ...(data.protocols === undefined ? {} : { protocols: data.protocols.slice(0, MAX_PROTOCOLS) }),
  });
  store.patch = (id, data, options) => patchPeer.call(store, id, limited(data), options);
  store.save = (id, data, options) => save.call(store, id, limited(data), options);
  store.merge = async (id, data, options) => {
    const merged = await merge.call(store, id, limited(data), options);
    if (merged.addresses.length <= maxAddresses) return merged;
    const given = [...(data.multiaddrs ?? []), ...(data.addresses ?? []).map(({ multiaddr }) => multiaddr)];
    const addresses = byWorth(id, merged.addresses, given).slice(0, maxAddresses);
    return patchPeer.call(store, id, { addresses }, options);
  };
}

/**
 * Sorts addresses by their value. The store sorts them as text, so their order does not reflect
 * their age.
 */
function byWorth(id: PeerId, all: readonly Address[], given: readonly Multiaddr[]): Address[] {
  // The store drops the peer's own id at the end of an address.
  const own = `/p2p/${id}`;
  const recent = new Set(given.map((address) => withoutEnd(`${address}`, own)));
  const rank = ({ isCertified, multiaddr }: Address) =>
    isCertified ? 0 : recent.has(withoutEnd(`${multiaddr}`, own)) ? 1 : 2;
  return all.toSorted((one, other) => rank(one) - rank(other));
}

const withoutEnd = (text: string, end: string) => (text.endsWith(end) ? text.slice(0, -end.length) : text);
