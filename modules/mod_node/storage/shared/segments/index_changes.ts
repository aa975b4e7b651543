/** Changes to the index of blocks that are written together. */
import { CID } from "multiformats/cid";
import { type Form, formOf, keyOf, Varints, varints } from "../../blockstore/segments/format.ts";
import type { Position, Reached } from "../log.ts";
import type { BlockIndex, IndexedLocation, IndexWrite, SegmentRow } from "./block_index.ts";
import { type IndexedBlock, sectionBytes } from "./index_file.ts";

/** Maximum number of entries per write. Each may be on a page of its own, which LMDB copies. */
const DUE_ENTRIES = 4096;

/**
 * Collects changes. Each change may be repeated after it was written, because a commit that was
 * written in part is applied again.
 */
export class IndexChanges {
  readonly #index: BlockIndex;
  #locations = new Map<string, readonly [multihash: Uint8Array, locations: readonly IndexedLocation[]]>();
  #rows = new Map<number, SegmentRow | undefined>();
  #condemned: IndexWrite["condemned"][number][] = [];
  #state: { locations: number; condemned: number };
  /** Whether a part was written before all changes were collected. */
  isBegun = false;

  constructor(index: BlockIndex) {
    this.#index = index;
    this.#state = { ...index.state };
  }

  get isDue(): boolean {
    return this.#locations.size >= DUE_ENTRIES;
  }

  addSegment(number: number, segment: Omit<SegmentRow, "live">): void {
    this.#rows.set(number, { live: this.#row(number)?.live ?? 0, ...segment });
  }

  removeSegment(number: number): void {
    this.#rows.set(number, undefined);
  }

  /** Records that the block is in this segment from now on. */
  setLocation(number: number, { multihash, form, offset, length }: IndexedBlock): void {
    const locations = this.#find(multihash);
    const old = locations.find((location) => location.form === form);
    const others = locations.filter((location) => location !== old);
    if (old !== undefined) this.#drop(multihash, old);
    this.#set(multihash, [...others, { form, segment: number, offset, length, epoch: 0 }]);
    this.#use(number, sectionBytes({ multihash, form, length }));
    this.#state.locations += 1;
  }

  /** Marks a form as condemned when it is in a segment up to that commit. */
  condemn(epoch: number, upTo: Position, cid: Uint8Array): void {
    const { form, multihash } = partsOfCid(cid);
    const locations = this.#find(multihash);
    const location = locations.find((each) => each.form === form);
    if (location === undefined || location.epoch !== 0 || (this.#row(location.segment)?.position ?? 0) > upTo) return;
    this.#set(
      multihash,
      locations.map((each) => (each === location ? { ...each, epoch } : each)),
    );
    this.#state.condemned += 1;
    this.#condemned.push({ epoch, key: condemnedKey(form, multihash), is: true });
  }

  /**
   * Removes or rescues a condemned form, which may have been stored again since. `key` is a key of
   * `BlockIndex.condemnedPage`.
   */
  decide(epoch: number, key: Uint8Array, isRescued: boolean): void {
    this.#condemned.push({ epoch, key, is: false });
    const { form, multihash } = partsOfKey(key);
    const locations = this.#find(multihash);
    const location = locations.find((each) => each.form === form && each.epoch === epoch);
    if (location === undefined) return;
    if (isRescued) {
      this.#state.condemned -= 1;
      this.#set(
        multihash,
        locations.map((each) => (each === location ? { ...each, epoch: 0 } : each)),
      );
      return;
    }
    this.#drop(multihash, location);
    this.#set(
      multihash,
      locations.filter((each) => each !== location),
    );
  }

  /**
   * Writes all collected changes and clears them. The index then contains the log up to `reached`.
   */
  async write({ position, commit }: Reached): Promise<void> {
    const locations = this.#locations;
    const rows = this.#rows;
    const condemned = this.#condemned;
    this.isBegun = true;
    this.#locations = new Map();
    this.#rows = new Map();
    this.#condemned = [];
    await this.#index.write({
      state: { ...this.#state, position, commit },
      locations: locations.values(),
      rows,
      condemned,
    });
  }

  #find(multihash: Uint8Array): readonly IndexedLocation[] {
    return this.#locations.get(keyOf(multihash))?.[1] ?? this.#index.find(multihash);
  }

  #set(multihash: Uint8Array, locations: readonly IndexedLocation[]): void {
    this.#locations.set(keyOf(multihash), [multihash, locations]);
  }

  #drop(multihash: Uint8Array, { segment, form, length, epoch }: IndexedLocation): void {
    this.#use(segment, -sectionBytes({ multihash, form, length }));
    this.#state.locations -= 1;
    if (epoch !== 0) this.#state.condemned -= 1;
  }

  #use(number: number, bytes: number): void {
    const row = this.#row(number);
    if (row !== undefined) this.#rows.set(number, { ...row, live: row.live + bytes });
  }

  #row(number: number): SegmentRow | undefined {
    return this.#rows.has(number) ? this.#rows.get(number) : this.#index.rows.get(number);
  }
}

export function partsOfCid(bytes: Uint8Array): { form: Form; multihash: Uint8Array } {
  const cid = CID.decode(bytes);
  return { form: formOf(cid), multihash: cid.multihash.bytes };
}

export const condemnedKey = (form: Form, multihash: Uint8Array): Uint8Array =>
  Buffer.concat([varints([form]), multihash]);

function partsOfKey(key: Uint8Array): { form: Form; multihash: Uint8Array } {
  const read = new Varints(key);
  const form = read.next();
  return { form, multihash: key.subarray(read.at) };
}

/** Returns the CID of a key of `BlockIndex.condemnedPage` as a key for sets. */
export const cidOfCondemned = (key: Uint8Array): string => {
  const { form, multihash } = partsOfKey(key);
  return keyOf(form === 0 ? multihash : Buffer.concat([varints([1, form - 1]), multihash]));
};
