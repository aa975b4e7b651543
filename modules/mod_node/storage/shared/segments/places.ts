/** The index of all blocks of the store, on the disk of this host: in LMDB, made anew from the log when it is lost. */
import { rm } from "node:fs/promises";
import { type Form, MAX_MULTIHASH, Varints, varints } from "../../blockstore/segments/format.ts";
import type { MakeRoom } from "../../disk_reserve.ts";
import { type Environment, EnvironmentDamaged, type Notice, openEnvironment, type Table } from "../../lmdb/open.ts";
import type { Position, Reached, SegmentId } from "../log.ts";
import type { IndexedBlock } from "./index_file.ts";
import type { ChunkTable } from "./mention_runs.ts";

/** Where the bytes of one form of a multihash are. */
export interface Place {
  readonly form: Form;
  /** Number of the segment on this host. */
  readonly segment: number;
  /** Of the first data byte. */
  readonly offset: number;
  readonly length: number;
  /** The collection that condemned it: it counts as not stored. 0 for none. */
  readonly epoch: number;
}

/** A segment of the store. */
export interface SegmentRow {
  readonly id: SegmentId;
  /** The commit that brought it. */
  readonly position: Position;
  /** Length of the CAR file. */
  readonly bytes: number;
  readonly blocks: number;
  /** Bytes of sections that places lead to; the rest is dead where all blocks were found. */
  readonly live: number;
  /** All its blocks were found when it came into the index: of the others nobody here knows whether they are in use. */
  readonly isWhole: boolean;
}

/** With how far the log is in the index. */
export interface PlacesState extends Reached {
  /** Places, condemned ones included. */
  readonly places: number;
  readonly condemned: number;
}

export const noState: PlacesState = { position: 0, places: 0, condemned: 0 };

/** Of one transaction. */
export interface PlaceWrite {
  readonly state: PlacesState;
  /** No place removes a multihash. */
  readonly places: Iterable<readonly [multihash: Uint8Array, places: readonly Place[]]>;
  /** Undefined removes a segment. */
  readonly rows: ReadonlyMap<number, SegmentRow | undefined>;
  /** True condemns, false ends that. */
  readonly condemned: readonly { readonly epoch: number; readonly key: Uint8Array; readonly is: boolean }[];
  /** Parts of runs, by number: none has been written before. */
  readonly chunks?: readonly (readonly [number: number, bytes: Uint8Array])[];
}

const FORMAT = 2;
const stateKey = Buffer.from([0]);
const none: readonly Place[] = [];

export class Places {
  readonly #folder: string;
  readonly #onNotice: Notice;
  readonly #makeRoom: MakeRoom | undefined;
  #environment!: Environment;
  #places!: Table;
  #segments!: Table;
  #condemned!: Table;
  #chunks!: Table;
  #state = noState;
  /** The log that it is of, as it names itself. */
  #store = "";
  /** By number. */
  readonly rows = new Map<number, SegmentRow>();

  private constructor(folder: string, onNotice: Notice, makeRoom: MakeRoom | undefined) {
    this.#folder = folder;
    this.#onNotice = onNotice;
    this.#makeRoom = makeRoom;
  }

  /** A damaged index is replaced by an empty one; `onNotice` is told. */
  static async open(folder: string, onNotice: Notice, makeRoom?: MakeRoom): Promise<Places> {
    const places = new Places(folder, onNotice, makeRoom);
    try {
      await places.#open();
    } catch (error) {
      if (!(error instanceof EnvironmentDamaged)) throw error;
      onNotice(`the index of the blocks: ${error.message}; it is made anew from the shared store`);
      await rm(folder, { recursive: true, force: true });
      await places.#open();
    }
    return places;
  }

  /** Of this log; what was written of another one is removed. */
  async belongTo(store: string): Promise<void> {
    if (this.#store !== store) await this.clear();
    this.#store = store;
  }

  get state(): PlacesState {
    return this.#state;
  }

  /** All places of a multihash, condemned ones included. */
  find(multihash: Uint8Array): readonly Place[] {
    if (multihash.length > MAX_MULTIHASH) return none;
    const value = this.#places.getBinaryFast(asBuffer(multihash));
    return value === undefined ? none : decodePlaces(value, value.length);
  }

  /** Whether these very bytes of a segment are what is stored under their multihash and form. */
  isAt(segment: number, { multihash, form, offset }: Pick<IndexedBlock, "multihash" | "form" | "offset">): boolean {
    return this.find(multihash).some(
      (place) => place.form === form && place.segment === segment && place.offset === offset,
    );
  }

  /** See `mention_runs.ts`. */
  readonly chunks: ChunkTable = {
    view: (chunk) => {
      const value = this.#chunks.getBinaryFast(numberKey(chunk));
      return value?.subarray(0, value.length);
    },
    copy: (chunk) => this.#chunks.get(numberKey(chunk)),
  };

  /** Multihashes in order, from the one after `after` on; none at the end. */
  page(after: Uint8Array | undefined, limit: number): { multihash: Uint8Array; places: readonly Place[] }[] {
    const range = this.#places.getRange({ ...from(after), limit });
    return [...range.map(({ key, value }) => ({ multihash: key, places: decodePlaces(value, value.length) }))];
  }

  /** Keys that a collection condemned, as they were given to `write`, from the one after `after` on. */
  condemnedPage(epoch: number, after: Uint8Array | undefined, limit: number): Uint8Array[] {
    const start = epochKey(epoch, after);
    const range = this.#condemned.getRange({ ...(after ? from(start) : { start }), end: epochKey(epoch + 1), limit });
    return [...range.map(({ key }) => key.subarray(EPOCH_BYTES))];
  }

  /** Collections that condemned what is neither removed nor rescued. */
  epochs(): number[] {
    const epochs: number[] = [];
    for (;;) {
      const start = epochKey((epochs.at(-1) ?? -1) + 1);
      const [next] = [...this.#condemned.getKeys({ start, limit: 1 })];
      if (next === undefined) return epochs;
      epochs.push(next.readUIntBE(0, EPOCH_BYTES));
    }
  }

  /** Durable when it resolves. */
  async write({ state, places, rows, condemned, chunks = [] }: PlaceWrite): Promise<void> {
    // A place never leads to a segment that is not known.
    for (const [number, row] of rows) if (row !== undefined && !this.rows.has(number)) this.rows.set(number, row);
    await this.#environment.write(() => {
      for (const [multihash, found] of places) {
        if (found.length === 0) this.#places.remove(asBuffer(multihash));
        else this.#places.put(asBuffer(multihash), asBuffer(encodePlaces(found)));
      }
      for (const [number, row] of rows) {
        if (row === undefined) this.#segments.remove(numberKey(number));
        else this.#segments.put(numberKey(number), encodeRow(row));
      }
      for (const { epoch, key, is } of condemned) {
        if (is) this.#condemned.put(epochKey(epoch, key), Buffer.alloc(0));
        else this.#condemned.remove(epochKey(epoch, key));
      }
      for (const [number, bytes] of chunks) this.#chunks.put(numberKey(number), asBuffer(bytes));
      this.#segments.put(
        stateKey,
        Buffer.concat([
          varints([FORMAT, state.position, state.places, state.condemned]),
          Buffer.from(`${this.#store} ${state.commit ?? ""}`),
        ]),
      );
    });
    this.#state = state;
    for (const [number, row] of rows) {
      if (row === undefined) this.rows.delete(number);
      else this.rows.set(number, row);
    }
  }

  bytes(): Promise<number> {
    return this.#environment.bytes();
  }

  /** Removes everything; reads go on meanwhile. */
  async clear(): Promise<void> {
    await this.#environment.write(() => {
      for (const table of [this.#places, this.#segments, this.#condemned, this.#chunks]) void table.clearAsync();
    });
    this.rows.clear();
    this.#state = noState;
  }

  /** Nothing of runs is needed any more. */
  async clearChunks(): Promise<void> {
    await this.#environment.write(() => void this.#chunks.clearAsync());
  }

  close(): Promise<void> {
    return this.#environment.close();
  }

  async #open(): Promise<void> {
    this.#environment = await openEnvironment(this.#folder, this.#onNotice, this.#makeRoom);
    this.#places = this.#environment.table("places");
    this.#segments = this.#environment.table("segments");
    this.#condemned = this.#environment.table("condemned");
    this.#chunks = this.#environment.table("chunks");
    this.rows.clear();
    this.#state = noState;
    const known = this.#segments.get(stateKey);
    if (known === undefined) return;
    const read = new Varints(known);
    if (read.next() !== FORMAT) return this.clear();
    const [position, places, condemned] = [read.next(), read.next(), read.next()];
    const [store = "", commit] = known.toString("latin1", read.at).split(" ");
    this.#state = { position, places, condemned, commit: commit || undefined };
    this.#store = store;
    for (const { key, value } of this.#segments.getRange())
      if (key.length === NUMBER_BYTES) this.rows.set(key.readUInt32BE(), decodeRow(value));
  }
}

const NUMBER_BYTES = 4;
const EPOCH_BYTES = 6;

const asBuffer = ({ buffer, byteOffset, length }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, length);

const from = (after: Uint8Array | undefined) => (after ? { start: Buffer.concat([after, Buffer.alloc(1)]) } : {});

function numberKey(number: number): Buffer {
  const key = Buffer.allocUnsafe(NUMBER_BYTES);
  key.writeUInt32BE(number);
  return key;
}

function epochKey(epoch: number, key: Uint8Array = new Uint8Array()): Buffer {
  const whole = Buffer.allocUnsafe(EPOCH_BYTES + key.length);
  whole.writeUIntBE(epoch, 0, EPOCH_BYTES);
  whole.set(key, EPOCH_BYTES);
  return whole;
}

const encodePlaces = (places: readonly Place[]): Uint8Array =>
  varints(places.flatMap(({ form, segment, offset, length, epoch }) => [form, segment, offset, length, epoch]));

function decodePlaces(value: Uint8Array, length: number): readonly Place[] {
  const read = new Varints(value);
  const { next } = read;
  const places: Place[] = [];
  while (read.at < length)
    places.push({ form: next(), segment: next(), offset: next(), length: next(), epoch: next() });
  return places;
}

/** Behind the id. */
const NOT_WHOLE = "?";

const encodeRow = ({ id, position, bytes, blocks, live, isWhole }: SegmentRow): Buffer =>
  Buffer.concat([varints([position, bytes, blocks, live]), Buffer.from(isWhole ? id : id + NOT_WHOLE)]);

function decodeRow(value: Buffer): SegmentRow {
  const read = new Varints(value);
  const [position, bytes, blocks, live] = [read.next(), read.next(), read.next(), read.next()];
  const [id = "", mark] = value.toString("latin1", read.at).split(/(?=\?)/);
  return { id, position, bytes, blocks, live, isWhole: mark === undefined };
}
