/**
 * Stores provider records that a peer sends. A peer that announces many blocks repeats its
 * addresses with each of them, and the library would write the same addresses into the peer store
 * each time. That takes a hundred times as long as storing the record.
 */
import type { PeerId } from "@libp2p/interface";
import { type AddProvider, decodeAddProvider, isProvider } from "./add_provider.ts";
import type { RecordStore } from "./record_store.ts";

/**
 * Stores the records that arrived in one read, and returns the messages that the library has to
 * handle: the last of each series with the same provider and addresses, and all other messages.
 *
 * @throws NodeError for a malformed message
 */
export function storeProviderRecords(
  messages: readonly Uint8Array[],
  sender: PeerId,
  records: Pick<RecordStore, "addProvider">,
): readonly Uint8Array[] {
  if (messages.length < 2) return messages;
  const announced = messages.map(decodeAddProvider);
  const own = sender.toMultihash().bytes;
  const peer = sender.toString();
  /** Whether the current series of records names the sender; undefined outside a series. */
  let isOwn: boolean | undefined;
  return messages.filter((_, at) => {
    const record = announced[at];
    if (record === undefined || !isSameProvider(record, announced[at + 1])) {
      isOwn = undefined;
      return true;
    }
    isOwn ??= isProvider(record.provider, own);
    if (!isOwn || !isSha256(record.key)) return true;
    records.addProvider(peer, record.key);
    return false;
  });
}

const isSameProvider = ({ provider }: AddProvider, next: AddProvider | undefined): boolean =>
  next !== undefined && Buffer.compare(provider, next.provider) === 0;

/** Nearly all blocks have such a multihash; the library handles the others. */
const isSha256 = ({ length, 0: code, 1: digestLength }: Uint8Array): boolean =>
  length === 34 && code === 0x12 && digestLength === 32;
