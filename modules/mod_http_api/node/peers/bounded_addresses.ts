import type { Address, PeerData, PeerStore } from "@libp2p/interface";

/** Addresses and protocols that are remembered of one peer. */
const usual = 128;
const mostProtocols = 256;

/**
 * However many addresses are told of a peer, by itself or by others and in how many messages: so many are kept. Those
 * that the peer has signed come first, then the ones that were heard of last. Of the protocols it is the first ones.
 */
export function boundAddresses(store: PeerStore, most = usual): void {
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
    return patch.call(store, id, { addresses: chosen(merged.addresses, most) }, options);
  };
}

function chosen(addresses: readonly Address[], most: number): Address[] {
  const signed = addresses.filter(({ isCertified }) => isCertified);
  const others = addresses.filter(({ isCertified }) => !isCertified);
  return [...signed, ...others.reverse()].slice(0, most);
}
