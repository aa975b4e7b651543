/** The records that this node, or another host of a shared store, published last under each name, on disk. */

import type { PeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { publishedKey } from "../ipns_record/keys.ts";
import { type IpnsRecord, readRecord } from "../ipns_record/record.ts";

/** A record, encoded and decoded. */
export interface PublishedRecord {
  readonly bytes: Uint8Array;
  readonly record: IpnsRecord;
}

export class PublishedRecords {
  readonly #metadata: MetadataStore;
  readonly #turns = new KeyedMutex();

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
  }

  /** It may have expired; undefined also when it cannot be decoded. */
  async get(id: PeerId): Promise<PublishedRecord | undefined> {
    return decoded(await this.#metadata.get(publishedKey(id)));
  }

  /**
   * Replaces the last record by what `make` returns, and resolves when it is on disk. Calls for one name run one after
   * the other, so `make` must not wait for peers. When another host of a shared store was faster, `make` is called again with
   * what that has published: no two records have the same sequence number.
   *
   * @param signal gives up waiting for earlier calls
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
        const held = await this.#metadata.get(key);
        const bytes = await make(decoded(held));
        if (await this.#metadata.compareAndSet(key, held, bytes)) return bytes;
      }
    };
    return this.#turns.runExclusive(key, work, signal);
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
