/**
 * Has the address manager announce other addresses from now on. The library takes `announce` when it is made, and tells
 * peers of its addresses only when a transport begins to listen, or ends.
 */
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "a change of Addresses.Announce or NoAnnounce counts from the next start on",
};

interface Announcer {
  readonly announce: Set<string>;
  _updatePeerStoreAddresses(): void;
}

/** False when it cannot. */
export function replaceAnnounced(addressManager: object, addresses: readonly string[], notices: PatchNotices): boolean {
  const { announce, _updatePeerStoreAddresses: update } = addressManager as Partial<Announcer>;
  const set = announce instanceof Set ? announce : undefined;
  const parts = { "addressManager.announce": set, "addressManager._updatePeerStoreAddresses": update };
  if (!notices.isApplicable(patch, parts) || set === undefined) return false;
  set.clear();
  for (const address of addresses) set.add(address);
  update?.call(addressManager);
  return true;
}
