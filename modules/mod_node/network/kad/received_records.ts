/**
 * Provider records that a peer stores here. Whoever announces many blocks says with each of them where it is: for each the library
 * would write the same addresses into the peer store, which takes a hundred times as long as keeping the record.
 */
import type { PeerId } from "@libp2p/interface";
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
  /** Of the record before, if the next one names the same provider. */
  let isOwn: boolean | undefined;
  return messages.filter((_, at) => {
    const record = announced[at];
    if (record === undefined || !isSameProvider(record, announced[at + 1])) {
      isOwn = undefined;
      return true;
    }
    isOwn ??= isProvider(record.provider, own);
    if (!isOwn || !isSha256(record.key)) return true;
    records.keepOf(peer, record.key);
    return false;
  });
}

const isSameProvider = ({ provider }: AddProvider, next: AddProvider | undefined): boolean =>
  next !== undefined && Buffer.compare(provider, next.provider) === 0;

/** The multihash of nearly all blocks; the library judges of others. */
const isSha256 = ({ length, 0: code, 1: digestLength }: Uint8Array): boolean =>
  length === 34 && code === 0x12 && digestLength === 32;
