/**
 * Prevents the address manager from writing the node's own addresses to the peer store. It does so
 * a second after an address was removed, even if libp2p stops: it would write to a closed store,
 * and keep the process alive for that second.
 */
import { disableMethod } from "../disable_method.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "closing the node takes a second longer",
};

const METHOD = "_updatePeerStoreAddresses";

/** Whether `stopAddressUpdates` will work; call it after libp2p was created. */
export const canStopAddressUpdates = (addressManager: object, notices: PatchNotices): boolean =>
  notices.isApplicable(patch, { [`addressManager.${METHOD}`]: Reflect.get(addressManager, METHOD) });

/** Must be called just before libp2p stops. */
export const stopAddressUpdates = (addressManager: object): void => disableMethod(addressManager, METHOD);
