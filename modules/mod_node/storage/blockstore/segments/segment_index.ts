/**
 * The index in LMDB: the location of each block, the usage of each segment, and the position in the
 * log up to which the index is complete.
 */
import { rm } from "node:fs/promises";
import { inSlices, mapSteps } from "../../../util/async/steps.ts";
import type { MakeRoom } from "../../disk_reserve.ts";
import { type Environment, EnvironmentDamaged, type Notice, openEnvironment, type Table } from "../../lmdb/open.ts";
import {
  type BlockLocation,
  type Form,
  MAX_MULTIHASH,
  offsetAt,
  type Position,
  positionAt,
  segmentAt,
  Varints,
  varints,
} from "./format.ts";

/**
 * The state of a multihash. Without forms, it was deleted. Without a location, an index is being
 * rebuilt.
 */
export interface Stored {
  readonly forms: readonly Form[];
  readonly location: BlockLocation | undefined;
}

/** The usage of the bytes of a segment; the rest is dead. */
export interface Usage {
  /** Bytes of sections of stored blocks. */
  readonly live: number;
  /** Bytes of records about stored blocks. */
  readonly records: number;
  /**
   * Bytes of records about deleted blocks. They are needed while an older segment may contain these
   * blocks.
   */
  readonly tombstones: number;
  /** Length of the segment that the index covers. */
  readonly length: number;
  /** Whether nothing in it is needed; the file may be gone already. */
  readonly dropping: boolean;
}

export const unused: Usage = { live: 0, records: 0, tombstones: 0, length: 0, dropping: false };

export interface State {
  /** The index covers the log up to this position. */
  readonly position: Position;
  /** Number of stored forms. */
  readonly blocks: number;
  /** Whether the index is incomplete because it is being rebuilt. */
  readonly rebuilding: boolean;
  /** The last bytes of the log before `position`. They differ in another log. */
  readonly last: Uint8Array;
}

interface Entry {
  readonly multihash: Uint8Array;
  readonly stored: Stored;
}

export interface Changes {
  readonly state: State;
  readonly blocks?: Iterable<Entry>;
  /** A value of undefined removes a segment. */
  readonly usage?: ReadonlyMap<number, Usage | undefined>;
}

const formatVersion = 1;
const stateKey = 0;

export class SegmentIndex {
  readonly #folder: string;
  readonly #onNotice: Notice;
  readonly #makeRoom: MakeRoom | undefined;
  #environment!: Environment;
  #blocks!: Table;
  #segments!: Table;

  private constructor(folder: string, onNotice: Notice, makeRoom: MakeRoom | undefined) {
    this.#folder = folder;
    this.#onNotice = onNotice;
    this.#makeRoom = makeRoom;
  }

  /**
   * Opens the index. A damaged index is replaced by an empty one. `onNotice` reports this, and also
   * skipped checks.
   */
  static async open(folder: string, onNotice: Notice, makeRoom?: MakeRoom): Promise<SegmentIndex> {
    const index = new SegmentIndex(folder, onNotice, makeRoom);
    try {
      await index.#open();
    } catch (error) {
      if (!(error instanceof EnvironmentDamaged)) throw error;
      onNotice(`the index of the blocks: ${error.message}`);
      await index.#clear();
    }
    return index;
  }

  find(multihash: Uint8Array): Stored | undefined {
    if (multihash.length > MAX_MULTIHASH) return undefined;
    const value = this.#blocks.getBinaryFast(asBuffer(multihash));
    return value && decodeStored(value, value.length);
  }

  /**
   * Returns undefined when nothing was written yet, or when another version of this format wrote
   * it.
   */
  load(): { readonly state: State; readonly usage: Map<number, Usage> } | undefined {
    const usage = new Map<number, Usage>();
    let state: State | undefined;
    for (const { key, value } of this.#segments.getRange()) {
      const read = new Varints(value);
      const { next } = read;
      const segment = key.readUInt32BE();
      if (segment !== stateKey) {
        const live = next();
        const records = next();
        const tombstones = next();
        const length = next();
        usage.set(segment, { live, records, tombstones, length, dropping: next() === 1 });
      } else if (next() === formatVersion) {
        const position = positionAt(next(), next());
        const blocks = next();
        const rebuilding = next() === 1;
        state = { position, blocks, rebuilding, last: value.subarray(read.at) };
      }
    }
    return state && { state, usage };
  }

  /** Writes everything in one transaction; durable when the promise resolves. */
  async write({ state, blocks = [], usage = new Map() }: Changes): Promise<void> {
    const encoded = await inSlices(mapSteps(blocks, encodeEntry));
    await this.#environment.write(() => {
      for (const { key, value } of encoded) {
        if (value === undefined) this.#blocks.remove(key);
        else this.#blocks.put(key, value);
      }
      for (const [segment, used] of usage) {
        if (used === undefined) this.#segments.remove(segmentKey(segment));
        else this.#segments.put(segmentKey(segment), asBuffer(encodeUsage(used)));
      }
      this.#segments.put(segmentKey(stateKey), asBuffer(encodeState(state)));
    });
  }

  /** Returns multihashes in order, beginning after `after`; fewer than `limit` at the end. */
  page(after: Uint8Array | undefined, limit: number): { multihash: Uint8Array; stored: Stored }[] {
    const start = after === undefined ? {} : { start: Buffer.concat([after, Buffer.alloc(1)]) };
    return [
      ...this.#blocks
        .getRange({ ...start, limit })
        .map(({ key, value }) => ({ multihash: key, stored: decodeStored(value, value.length) })),
    ];
  }

  bytes(): Promise<number> {
    return this.#environment.bytes();
  }

  /** Removes everything. */
  async clear(): Promise<void> {
    await this.#environment.close();
    await this.#clear();
  }

  close(): Promise<void> {
    return this.#environment.close();
  }

  async #clear(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await this.#open();
  }

  async #open(): Promise<void> {
    this.#environment = await openEnvironment(this.#folder, this.#onNotice, this.#makeRoom);
    this.#blocks = this.#environment.table("blocks");
    this.#segments = this.#environment.table("segments");
  }
}

const asBuffer = ({ buffer, byteOffset, length }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, length);

function segmentKey(segment: number): Buffer {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(segment);
  return key;
}

/** Encodes an entry; a multihash that is no longer stored has no value. */
const encodeEntry = ({ multihash, stored }: Entry) => ({
  key: asBuffer(multihash),
  value: stored.forms.length === 0 ? undefined : asBuffer(encodeStored(stored)),
});

function encodeStored({ location, forms }: Stored): Uint8Array {
  const where =
    location === undefined ? [0] : [location.segment, location.offset, location.length, location.headLength];
  return varints([...where, ...forms]);
}

function decodeStored(value: Uint8Array, length: number): Stored {
  const read = new Varints(value);
  const segment = read.next();
  const location =
    segment === 0
      ? undefined
      : { segment, offset: read.next(), length: read.next(), headLength: read.next(), bytes: undefined };
  const forms: Form[] = [];
  while (read.at < length) forms.push(read.next());
  return { location, forms };
}

const encodeUsage = ({ live, records, tombstones, length, dropping }: Usage): Uint8Array =>
  varints([live, records, tombstones, length, Number(dropping)]);

const encodeState = ({ position, blocks, rebuilding, last }: State): Uint8Array =>
  Buffer.concat([varints([formatVersion, segmentAt(position), offsetAt(position), blocks, Number(rebuilding)]), last]);
