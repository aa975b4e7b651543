/**
 * Provider records that a peer stores here. Whoever announces many blocks says with each of them where it is: for each the library
 * would write the same addresses into the peer store, which takes a hundred times as long as keeping the record.
 */
import type { PeerId } from "@libp2p/interface";
import { CID } from "multiformats/cid";
import { type AddProvider, decodeAddProvider, isProvider } from "./add_provider.ts";
import type { RecordStore } from "./record_store.ts";

/**
 * Keeps the records that came in one read, and gives the messages that are left to the library: of those that name the same
 * provider with the same addresses the last, and all others.
 *
 * @throws NodeError for a malformed message
 */
export function keepRecords(
  messages: readonly Uint8Array[],
  sender: PeerId,
  records: Pick<RecordStore, "keepOf">,
): readonly Uint8Array[] {
  if (messages.length < 2) return messages;
  const announced = messages.map(decodeAddProvider);
  const own = sender.toMultihash().bytes;
  const peer = sender.toString();
  return messages.filter((_, at) => {
    const multihash = repeated(announced[at], announced[at + 1], own);
    if (multihash !== undefined) records.keepOf(peer, multihash);
    return multihash === undefined;
  });
}

/** The block of a record of `own` when the next one names the same addresses; undefined otherwise, and where the library has to judge. */
function repeated(
  record: AddProvider | undefined,
  next: AddProvider | undefined,
  own: Uint8Array,
): Uint8Array | undefined {
  if (record === undefined || next === undefined || Buffer.compare(record.provider, next.provider) !== 0)
    return undefined;
  if (!isProvider(record.provider, own)) return undefined;
  try {
    // As the library reads it.
    return CID.decode(record.key).multihash.bytes;
  } catch {
    return undefined;
  }
}
