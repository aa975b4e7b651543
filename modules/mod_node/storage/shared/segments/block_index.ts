/**
 * The index of all blocks of the store in LMDB on the disk of this host. It is rebuilt from the log
 * when it is lost.
 */
import { rm } from "node:fs/promises";
import { type Form, MAX_MULTIHASH, Varints, varints } from "../../blockstore/segments/format.ts";
import type { MakeRoom } from "../../disk_reserve.ts";
import { type Environment, EnvironmentDamaged, type Notice, openEnvironment, type Table } from "../../lmdb/open.ts";
import type { Position, Reached, SegmentId } from "../log.ts";
import type { IndexedBlock } from "./index_file.ts";
import type { ChunkTable } from "./mention_runs.ts";

/** The location of one form of a multihash. */
export interface IndexedLocation {
  readonly form: Form;
  /** Number of the segment on this host. */
  readonly segment: number;
  /** Offset of the first data byte. */
  readonly offset: number;
  readonly length: number;
  /** The collection that condemned the block, which then counts as not stored; 0 for none. */
  readonly epoch: number;
}

/** A segment of the store. */
export interface SegmentRow {
  readonly id: SegmentId;
  /** The commit that added the segment. */
  readonly position: Position;
  /** Length of the CAR file. */
  readonly bytes: number;
  readonly blocks: number;
  /**
   * Bytes of the sections of indexed blocks. The other bytes are dead, if all blocks of the segment
   * were found.
   */
  readonly live: number;
  /**
   * Whether all its blocks were found when it was added to the index. This host does not know
   * whether missing blocks are live.
   */
  readonly isWhole: boolean;
}

/** The state of the index and the position of the log in it. */
export interface IndexState extends Reached {
  /** Number of locations, including condemned ones. */
  readonly locations: number;
  readonly condemned: number;
}

export const emptyState: IndexState = { position: 0, locations: 0, condemned: 0 };

/** Changes of one transaction. */
export interface IndexWrite {
  readonly state: IndexState;
  /** An empty list of locations removes the multihash. */
  readonly locations: Iterable<readonly [multihash: Uint8Array, locations: readonly IndexedLocation[]]>;
  /** A value of undefined removes the segment. */
  readonly rows: ReadonlyMap<number, SegmentRow | undefined>;
  /** True marks a key as condemned, false removes the mark. */
  readonly condemned: readonly { readonly epoch: number; readonly key: Uint8Array; readonly is: boolean }[];
  /** New chunks of runs by number. */
  readonly chunks?: readonly (readonly [number: number, bytes: Uint8Array])[];
}

const FORMAT = 2;
const stateKey = Buffer.from([0]);
const none: readonly IndexedLocation[] = [];

export class BlockIndex {
  readonly #folder: string;
  readonly #onNotice: Notice;
  readonly #makeRoom: MakeRoom | undefined;
  #environment!: Environment;
  #locations!: Table;
  #segments!: Table;
  #condemned!: Table;
  #chunks!: Table;
  #state = emptyState;
  /** The name of the log that the index belongs to. */
  #store = "";
  /** Segments by number. */
  readonly rows = new Map<number, SegmentRow>();

  private constructor(folder: string, onNotice: Notice, makeRoom: MakeRoom | undefined) {
    this.#folder = folder;
    this.#onNotice = onNotice;
    this.#makeRoom = makeRoom;
  }

  /** Opens the index. A damaged index is replaced by an empty one, which `onNotice` reports. */
  static async open(folder: string, onNotice: Notice, makeRoom?: MakeRoom): Promise<BlockIndex> {
    const index = new BlockIndex(folder, onNotice, makeRoom);
    try {
      await index.#open();
    } catch (error) {
      if (!(error instanceof EnvironmentDamaged)) throw error;
      onNotice(`the index of the blocks: ${error.message}; rebuilding it from the shared store`);
      await rm(folder, { recursive: true, force: true });
      await index.#open();
    }
    return index;
  }

  /** Clears the index when it belongs to another log. */
  async belongTo(store: string): Promise<void> {
    if (this.#store !== store) await this.clear();
    this.#store = store;
  }

  get state(): IndexState {
    return this.#state;
  }

  /** Returns all locations of a multihash, including condemned ones. */
  find(multihash: Uint8Array): readonly IndexedLocation[] {
    if (multihash.length > MAX_MULTIHASH) return none;
    const value = this.#locations.getBinaryFast(asBuffer(multihash));
    return value === undefined ? none : decodeLocations(value, value.length);
  }

  /** Whether the block at this offset of a segment is the stored copy of its multihash and form. */
  isAt(segment: number, { multihash, form, offset }: Pick<IndexedBlock, "multihash" | "form" | "offset">): boolean {
    return this.find(multihash).some(
      (location) => location.form === form && location.segment === segment && location.offset === offset,
    );
  }

  /** The chunks of `mention_runs.ts`. */
  readonly chunks: ChunkTable = {
    view: (chunk) => {
      const value = this.#chunks.getBinaryFast(numberKey(chunk));
      return value?.subarray(0, value.length);
    },
    copy: (chunk) => this.#chunks.get(numberKey(chunk)),
  };

  /**
   * Returns entries in the order of multihashes, beginning after `after`; an empty page at the end.
   */
  page(
    after: Uint8Array | undefined,
    limit: number,
  ): { multihash: Uint8Array; locations: readonly IndexedLocation[] }[] {
    const range = this.#locations.getRange({ ...from(after), limit });
    return [...range.map(({ key, value }) => ({ multihash: key, locations: decodeLocations(value, value.length) }))];
  }

  /**
   * Returns keys that a collection condemned, as they were passed to `write`, beginning after
   * `after`.
   */
  condemnedPage(epoch: number, after: Uint8Array | undefined, limit: number): Uint8Array[] {
    const start = epochKey(epoch, after);
    const range = this.#condemned.getRange({ ...(after ? from(start) : { start }), end: epochKey(epoch + 1), limit });
    return [...range.map(({ key }) => key.subarray(EPOCH_BYTES))];
  }

  /** Returns the undecided collections. */
  epochs(): number[] {
    const epochs: number[] = [];
    for (;;) {
      const start = epochKey((epochs.at(-1) ?? -1) + 1);
      const [next] = [...this.#condemned.getKeys({ start, limit: 1 })];
      if (next === undefined) return epochs;
      epochs.push(next.readUIntBE(0, EPOCH_BYTES));
    }
  }

  /** Writes changes; durable when the promise resolves. */
  async write({ state, locations, rows, condemned, chunks = [] }: IndexWrite): Promise<void> {
    // Rows are added first, so that a location never refers to an unknown segment.
    for (const [number, row] of rows) if (row !== undefined && !this.rows.has(number)) this.rows.set(number, row);
    await this.#environment.write(() => {
      for (const [multihash, found] of locations) {
        if (found.length === 0) this.#locations.remove(asBuffer(multihash));
        else this.#locations.put(asBuffer(multihash), asBuffer(encodeLocations(found)));
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
          varints([FORMAT, state.position, state.locations, state.condemned]),
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

  /** Removes everything; reads may continue in the meantime. */
  async clear(): Promise<void> {
    await this.#environment.write(() => {
      for (const table of [this.#locations, this.#segments, this.#condemned, this.#chunks]) void table.clearAsync();
    });
    this.rows.clear();
    this.#state = emptyState;
  }

  /** Removes all chunks of runs. */
  async clearChunks(): Promise<void> {
    await this.#environment.write(() => void this.#chunks.clearAsync());
  }

  close(): Promise<void> {
    return this.#environment.close();
  }

  async #open(): Promise<void> {
    this.#environment = await openEnvironment(this.#folder, this.#onNotice, this.#makeRoom);
    this.#locations = this.#environment.table("places");
    this.#segments = this.#environment.table("segments");
    this.#condemned = this.#environment.table("condemned");
    this.#chunks = this.#environment.table("chunks");
    this.rows.clear();
    this.#state = emptyState;
    const known = this.#segments.get(stateKey);
    if (known === undefined) return;
    const read = new Varints(known);
    if (read.next() !== FORMAT) return this.clear();
    const position = read.next();
    const locations = read.next();
    const condemned = read.next();
    const [store = "", commit] = known.toString("latin1", read.at).split(" ");
    this.#state = { position, locations, condemned, commit: commit || undefined };
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

const encodeLocations = (locations: readonly IndexedLocation[]): Uint8Array =>
  varints(locations.flatMap(({ form, segment, offset, length, epoch }) => [form, segment, offset, length, epoch]));

function decodeLocations(value: Uint8Array, length: number): readonly IndexedLocation[] {
  const read = new Varints(value);
  const { next } = read;
  const locations: IndexedLocation[] = [];
  while (read.at < length)
    locations.push({ form: next(), segment: next(), offset: next(), length: next(), epoch: next() });
  return locations;
}

/** Marks the id of a segment that is not whole: it is appended. */
const NOT_WHOLE = "?";

const encodeRow = ({ id, position, bytes, blocks, live, isWhole }: SegmentRow): Buffer =>
  Buffer.concat([varints([position, bytes, blocks, live]), Buffer.from(isWhole ? id : id + NOT_WHOLE)]);

function decodeRow(value: Buffer): SegmentRow {
  const read = new Varints(value);
  const position = read.next();
  const bytes = read.next();
  const blocks = read.next();
  const live = read.next();
  const [id = "", mark] = value.toString("latin1", read.at).split(/(?=\?)/);
  return { id, position, bytes, blocks, live, isWhole: mark === undefined };
}
