/**
 * Stores the last published record of each name on disk, whether this node or another host of a
 * shared store has published it.
 */

import type { PeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { publishedKey, refusedKey } from "../ipns_record/keys.ts";
import { type IpnsRecord, readRecord } from "../ipns_record/record.ts";

/** A record in encoded and decoded form. */
export interface PublishedRecord {
  readonly bytes: Uint8Array;
  readonly record: IpnsRecord;
}

export class PublishedRecords {
  readonly #metadata: MetadataStore;
  readonly #mutex = new KeyedMutex();

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
  }

  /**
   * Resolves to the record, which may have expired; to undefined if there is none or it cannot be
   * decoded.
   */
  async get(id: PeerId): Promise<PublishedRecord | undefined> {
    return decoded(await this.#metadata.get(publishedKey(id)));
  }

  /**
   * Returns the last record that was signed for the name and then refused, as stored by
   * `storeRefused`.
   */
  async refused(id: PeerId): Promise<PublishedRecord | undefined> {
    return decoded(await this.#metadata.get(refusedKey(id)));
  }

  /**
   * Stores a refused record: its sequence number counts for the next record, but the name never
   * resolves to it.
   */
  async storeRefused(id: PeerId, bytes: Uint8Array): Promise<void> {
    await this.#metadata.transaction((writer) => writer.put(refusedKey(id), bytes));
  }

  /**
   * Replaces the last record by the result of `make`, and resolves when it is on disk. Calls for
   * one name run one after the other, so `make` must not wait for peers. If another host of a
   * shared store was faster, `make` is called again with the record of that host, so that no two
   * records have the same sequence number.
   *
   * @param signal aborts waiting for earlier calls
   */
  update(
    id: PeerId,
    make: (last: PublishedRecord | undefined) => Promise<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    const key = publishedKey(id);
    const work = async () => {
      for (;;) {
        signal?.throwIfAborted();
        const current = await this.#metadata.get(key);
        const bytes = await make(decoded(current));
        if (await this.#metadata.compareAndSet(key, current, bytes)) return bytes;
      }
    };
    return this.#mutex.runExclusive(key, work, signal);
  }
}

function decoded(bytes: Uint8Array | undefined): PublishedRecord | undefined {
  if (bytes === undefined) return undefined;
  try {
    return { bytes, record: readRecord(bytes) };
  } catch {
    return undefined;
  }
}
