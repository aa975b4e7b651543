/** Changes to the index of blocks that are written together. */
import { CID } from "multiformats/cid";
import { type Form, formOf, keyOf, Varints, varints } from "../../blockstore/segments/format.ts";
import type { Position, Reached } from "../log.ts";
import { type IndexedBlock, sectionBytes } from "./index_file.ts";
import type { Place, Places, PlaceWrite, SegmentRow } from "./places.ts";

/** Entries that are written at a time: each may be on a page of its own, which LMDB copies. */
const DUE_ENTRIES = 4096;

/** Each change may be made again after it was written: a commit that was written in part is applied anew. */
export class PlaceChanges {
  readonly #index: Places;
  #places = new Map<string, readonly [multihash: Uint8Array, places: readonly Place[]]>();
  #rows = new Map<number, SegmentRow | undefined>();
  #condemned: PlaceWrite["condemned"][number][] = [];
  #state: { places: number; condemned: number };
  /** Some of it was written before all of it was there. */
  isBegun = false;

  constructor(index: Places) {
    this.#index = index;
    this.#state = { ...index.state };
  }

  get isDue(): boolean {
    return this.#places.size >= DUE_ENTRIES;
  }

  addSegment(number: number, segment: Omit<SegmentRow, "live">): void {
    this.#rows.set(number, { live: this.#row(number)?.live ?? 0, ...segment });
  }

  removeSegment(number: number): void {
    this.#rows.set(number, undefined);
  }

  /** The block is in this segment from now on. */
  place(number: number, { multihash, form, offset, length }: IndexedBlock): void {
    const places = this.#find(multihash);
    const old = places.find((place) => place.form === form);
    const others = places.filter((place) => place !== old);
    if (old !== undefined) this.#drop(multihash, old);
    this.#set(multihash, [...others, { form, segment: number, offset, length, epoch: 0 }]);
    this.#use(number, sectionBytes({ multihash, form, length }));
    this.#state.places += 1;
  }

  /** The form counts as not stored, if it is in a segment of up to that commit. */
  condemn(epoch: number, upTo: Position, cid: Uint8Array): void {
    const { form, multihash } = partsOfCid(cid);
    const places = this.#find(multihash);
    const place = places.find((each) => each.form === form);
    if (place === undefined || place.epoch !== 0 || (this.#row(place.segment)?.position ?? 0) > upTo) return;
    this.#set(
      multihash,
      places.map((each) => (each === place ? { ...each, epoch } : each)),
    );
    this.#state.condemned += 1;
    this.#condemned.push({ epoch, key: condemnedKey(form, multihash), is: true });
  }

  /** What becomes of a condemned form, which may have been stored anew since. `key` is one of `Places.condemnedPage`. */
  decide(epoch: number, key: Uint8Array, isRescued: boolean): void {
    this.#condemned.push({ epoch, key, is: false });
    const { form, multihash } = partsOfKey(key);
    const places = this.#find(multihash);
    const place = places.find((each) => each.form === form && each.epoch === epoch);
    if (place === undefined) return;
    if (isRescued) {
      this.#state.condemned -= 1;
      this.#set(
        multihash,
        places.map((each) => (each === place ? { ...each, epoch: 0 } : each)),
      );
      return;
    }
    this.#drop(multihash, place);
    this.#set(
      multihash,
      places.filter((each) => each !== place),
    );
  }

  /** Writes everything, and is empty then. The index has the log up to `reached`. */
  async write({ position, commit }: Reached): Promise<void> {
    const [places, rows, condemned] = [this.#places, this.#rows, this.#condemned];
    this.isBegun = true;
    this.#places = new Map();
    this.#rows = new Map();
    this.#condemned = [];
    await this.#index.write({ state: { ...this.#state, position, commit }, places: places.values(), rows, condemned });
  }

  #find(multihash: Uint8Array): readonly Place[] {
    return this.#places.get(keyOf(multihash))?.[1] ?? this.#index.find(multihash);
  }

  #set(multihash: Uint8Array, places: readonly Place[]): void {
    this.#places.set(keyOf(multihash), [multihash, places]);
  }

  #drop(multihash: Uint8Array, { segment, form, length, epoch }: Place): void {
    this.#use(segment, -sectionBytes({ multihash, form, length }));
    this.#state.places -= 1;
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

/** The CID of a key of `Places.condemnedPage`, as the key of a set. */
export const cidOfCondemned = (key: Uint8Array): string => {
  const { form, multihash } = partsOfKey(key);
  return keyOf(form === 0 ? multihash : Buffer.concat([varints([1, form - 1]), multihash]));
};
