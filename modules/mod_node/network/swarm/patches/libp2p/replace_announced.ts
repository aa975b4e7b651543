/**
 * Has the address manager announce other addresses from now on. The library takes `announce` when it is made, and tells
 * peers of its addresses only when a transport begins to listen, or ends.
 */
import type { AnnouncedAddresses } from "../../listen_addresses.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "a change of Addresses.Announce, AppendAnnounce or NoAnnounce counts from the next start on",
};

interface Announcer {
  readonly announce: Set<string>;
  readonly appendAnnounce: Set<string>;
  _updatePeerStoreAddresses(): void;
}

/** False when it cannot. */
export function replaceAnnounced(addressManager: object, wanted: AnnouncedAddresses, notices: PatchNotices): boolean {
  const { announce, appendAnnounce, _updatePeerStoreAddresses: update } = addressManager as Partial<Announcer>;
  const sets = { announce: setOf(announce), appendAnnounce: setOf(appendAnnounce) };
  const parts = {
    "addressManager.announce": sets.announce,
    "addressManager.appendAnnounce": sets.appendAnnounce,
    "addressManager._updatePeerStoreAddresses": update,
  };
  if (!notices.isApplicable(patch, parts)) return false;
  for (const name of ["announce", "appendAnnounce"] as const) {
    sets[name]?.clear();
    for (const address of wanted[name]) sets[name]?.add(address);
  }
  update?.call(addressManager);
  return true;
}

const setOf = (value: unknown): Set<string> | undefined => (value instanceof Set ? value : undefined);
