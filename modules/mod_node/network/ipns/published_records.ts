/** The records that this node published last, on disk. */

import type { PeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { publishedKey } from "../ipns_record/keys.ts";
import { decodeRecord, type IpnsRecord } from "../ipns_record/record.ts";

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
    const bytes = await this.#metadata.get(publishedKey(id));
    if (bytes === undefined) return undefined;
    try {
      return { bytes, record: decodeRecord(bytes) };
    } catch {
      return undefined;
    }
  }

  /**
   * Replaces the last record by what `make` returns, and resolves when it is on disk. Calls for one name run one after
   * the other, so `make` must not wait for peers.
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
      const bytes = await make(await this.get(id));
      await this.#metadata.transaction((writer) => writer.put(key, bytes));
      return bytes;
    };
    return this.#turns.runExclusive(key, work, signal);
  }
}
