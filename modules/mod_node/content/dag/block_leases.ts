/**
 * Leases blocks to clients until they have received them. The memory of all leases together is
 * bounded, however many clients there are and however slow they are. While there is room, each
 * client gets whole blocks without a copy. Beyond that, it gets copies of slices: the block itself
 * is dropped while the client receives nothing, and is read again for the next slice.
 */
import { type BlockPart, MIN_REMEMBERED_BYTES, originOf } from "../../storage/blockstore/origins.ts";
import { WeightedSemaphore } from "../../util/async/weighted_semaphore.ts";

const MIB = 1024 * 1024;

/**
 * Size of a slice in bytes. Slices, and pieces that are no larger, do not count against the budget:
 * each client may have two of them at a time.
 */
const SLICE_BYTES = MIN_REMEMBERED_BYTES - 1;

export interface LeaseLimits {
  /** Maximum number of bytes of blocks that are leased without a copy. */
  readonly whole: number;
  /**
   * Maximum number of bytes of blocks that are being copied in slices. Further blocks wait for a
   * reservation.
   */
  readonly sliced: number;
  /** Milliseconds for which a block stays in memory for the next slice. */
  readonly retainMs: number;
}

const LIMITS: LeaseLimits = { whole: 64 * MIB, sliced: 32 * MIB, retainMs: 20 };

/** Limits the leases of all clients together. */
export class LeaseBudget {
  readonly #limits: LeaseLimits;
  readonly #reservations: WeightedSemaphore;
  #whole = 0;
  #sliced = 0;

  constructor(limits: LeaseLimits = LIMITS) {
    this.#limits = limits;
    this.#reservations = new WeightedSemaphore(limits.sliced);
  }

  /** Bytes of blocks that are leased or being copied now. */
  get leasedBytes(): number {
    return this.#whole + this.#sliced;
  }

  get retainMs(): number {
    return this.#limits.retainMs;
  }

  /** Returns false if there is no room. */
  lease(bytes: number): boolean {
    if (this.#whole + bytes > this.#limits.whole) return false;
    this.#whole += bytes;
    return true;
  }

  endLease(bytes: number): void {
    this.#whole -= bytes;
  }

  /**
   * Reserves room for a block that is copied in slices. Returns undefined if the room is free now.
   * The caller ends it by `endReservation`.
   */
  reserve(bytes: number): Promise<void> | undefined {
    const waiting = this.#reservations.acquire(bytes);
    if (waiting !== undefined) return waiting.then(() => void (this.#sliced += bytes));
    this.#sliced += bytes;
    return undefined;
  }

  /** Like `reserve`, but returns false instead of waiting. */
  tryReserve(bytes: number): boolean {
    if (!this.#reservations.isFree(bytes)) return false;
    this.reserve(bytes);
    return true;
  }

  endReservation(bytes: number): void {
    this.#sliced -= bytes;
    this.#reservations.release(bytes);
  }
}

const sharedBudget = new LeaseBudget();

export interface BlockLeaseOptions {
  /** Returns a piece, or a block, that is no longer used. */
  readonly release: (piece: Uint8Array) => void;
  /** Called when waiting for the client or for room begins, and when it ends. */
  readonly waiting?: ((isWaiting: boolean) => void) | undefined;
  readonly budget?: LeaseBudget | undefined;
}

type LeasedPieces = AsyncGenerator<Uint8Array, void, undefined>;

/** The leases of one client. The creator calls `end` when the response is over, complete or not. */
export class BlockLeases {
  readonly #release: (piece: Uint8Array) => void;
  readonly #waiting: (isWaiting: boolean) => void;
  readonly #budget: LeaseBudget;
  /** Sizes of the blocks whose pieces are leased without a copy. */
  readonly #whole = new Map<Uint8Array, number>();
  /** Copies that the client has not received. */
  readonly #slices = new Set<Uint8Array>();
  #onTaken: (() => void) | undefined;
  #isOver = false;

  constructor({ release, waiting = () => undefined, budget = sharedBudget }: BlockLeaseOptions) {
    this.#release = release;
    this.#waiting = waiting;
    this.#budget = budget;
  }

  /**
   * Leases a piece without a copy, until `release` or `end`. Returns false if there is no room and
   * the piece can be read again later.
   */
  lease(piece: Uint8Array): boolean {
    const part = originOf(piece);
    return part === undefined || this.#isOver || this.#leaseWhole(piece, part.capacity);
  }

  /**
   * Yields the pieces without a copy, or in slices. The consumer calls `release` with each piece
   * that the client has received.
   */
  async *pieces(source: AsyncIterable<Uint8Array>): LeasedPieces {
    for await (const piece of source) {
      if (this.#isOver) return;
      const part = originOf(piece);
      if (part === undefined || this.#leaseWhole(piece, part.capacity)) yield piece;
      else yield* this.#sliced(part, piece);
    }
  }

  /**
   * Returns a function that yields the bytes `first` to `last` of a piece in slices. For a piece
   * for which there was no room: the block is read again.
   */
  reread(piece: Uint8Array): (first: number, last: number) => LeasedPieces {
    const part = originOf(piece) as BlockPart;
    return (first, last) => this.#sliced({ ...part, offset: part.offset + first, length: last - first + 1 }, undefined);
  }

  /** To be called when the client has received this piece. */
  release(piece: Uint8Array): void {
    const capacity = this.#whole.get(piece);
    if (capacity !== undefined) {
      this.#whole.delete(piece);
      this.#budget.endLease(capacity);
    } else if (this.#slices.delete(piece) && this.#slices.size === 0) this.#onTaken?.();
    this.#release(piece);
  }

  /** To be called when nothing more is sent. */
  end(): void {
    this.#isOver = true;
    for (const capacity of this.#whole.values()) this.#budget.endLease(capacity);
    this.#whole.clear();
    this.#onTaken?.();
  }

  #leaseWhole(piece: Uint8Array, capacity: number): boolean {
    if (!this.#budget.lease(capacity)) return false;
    this.#whole.set(piece, capacity);
    return true;
  }

  async *#sliced(part: BlockPart, piece: Uint8Array | undefined): LeasedPieces {
    const block = new SlicedBlock(this.#budget, this.#release, part);
    try {
      if (piece !== undefined) block.use(piece);
      for (let at = 0; at < part.length && !this.#isOver; ) {
        const rest = (block.current() ?? (await this.#readAgain(block)))?.subarray(at);
        if (rest === undefined) return;
        if (rest.length > SLICE_BYTES && this.#leaseWhole(rest, part.capacity)) {
          block.handOver();
          yield rest;
          return;
        }
        // The slice is a copy, because a view would keep the whole block in memory while the
        // connection uses it.
        const slice = rest.slice(0, SLICE_BYTES);
        at += slice.length;
        if (at < part.length) block.retainBriefly();
        else block.drop();
        this.#slices.add(slice);
        yield slice;
      }
    } finally {
      block.drop();
    }
  }

  /**
   * Reads the block again, once the client has received everything that it was given. Returns
   * undefined if the response is over.
   */
  async #readAgain(block: SlicedBlock): Promise<Uint8Array | undefined> {
    this.#waiting(true);
    if (this.#slices.size > 0) await new Promise<void>((resolve) => (this.#onTaken = resolve));
    this.#onTaken = undefined;
    if (!this.#isOver) await block.reserve();
    this.#waiting(false);
    return this.#isOver ? undefined : block.read();
  }
}

/** A block that is copied in slices. It may be dropped and read again between slices. */
class SlicedBlock {
  readonly #budget: LeaseBudget;
  readonly #release: (piece: Uint8Array) => void;
  readonly #part: BlockPart;
  #piece: Uint8Array | undefined;
  #isReserved = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(budget: LeaseBudget, release: (piece: Uint8Array) => void, part: BlockPart) {
    this.#budget = budget;
    this.#release = release;
    this.#part = part;
  }

  /**
   * Uses a piece for one slice, before other work gets the event loop. `retainBriefly` extends
   * that.
   */
  use(piece: Uint8Array): void {
    this.#piece = piece;
  }

  /** Returns the bytes, or undefined if they were dropped. */
  current(): Uint8Array | undefined {
    clearTimeout(this.#timer);
    return this.#piece;
  }

  reserve(): Promise<void> | undefined {
    const waiting = this.#budget.reserve(this.#part.capacity);
    this.#isReserved = true;
    return waiting;
  }

  async read(): Promise<Uint8Array> {
    const { again, offset, length } = this.#part;
    const bytes = await again();
    this.#piece = bytes.subarray(offset, offset + length);
    return this.#piece;
  }

  /** Retains the bytes for a moment if there is room, and drops them otherwise. */
  retainBriefly(): void {
    this.#isReserved ||= this.#budget.tryReserve(this.#part.capacity);
    if (this.#isReserved) this.#timer = setTimeout(() => this.drop(), this.#budget.retainMs).unref();
    else this.drop();
  }

  /** To be called when the piece was passed to another owner. */
  handOver(): void {
    this.#piece = undefined;
    this.drop();
  }

  drop(): void {
    clearTimeout(this.#timer);
    if (this.#piece !== undefined) this.#release(this.#piece);
    this.#piece = undefined;
    if (this.#isReserved) this.#budget.endReservation(this.#part.capacity);
    this.#isReserved = false;
  }
}
