/**
 * Makes the address manager announce other addresses. The library only reads `announce` at its
 * creation, and notifies peers of its addresses only when a transport starts or stops listening.
 */
import type { AnnouncedAddresses } from "../../listen_addresses.ts";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "libp2p",
  version: "3.3.11",
  without: "a change of Addresses.Announce, AppendAnnounce or NoAnnounce takes effect at the next start",
};

interface Announcer {
  readonly announce: Set<string>;
  readonly appendAnnounce: Set<string>;
  _updatePeerStoreAddresses(): void;
}

/** Returns false if that is not possible. */
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
