/**
 * Blocks that are lent to clients until they have taken them. What all clients hold together is
 * bounded, however many they are and however slow: while there is room each gets its blocks as they
 * are; beyond that, copies of slices, and the block itself is let go while its client takes
 * nothing, and read again for the next slice.
 */
import { type BlockPart, MIN_REMEMBERED_BYTES, originOf } from "../../storage/blockstore/origins.ts";
import { WeightedSemaphore } from "../../util/async/weighted_semaphore.ts";

const MIB = 1024 * 1024;

/** Of the copies. What is no longer than this is not counted: any client may hold two of them. */
const SLICE_BYTES = MIN_REMEMBERED_BYTES - 1;

export interface LendingLimits {
  /** Bytes of blocks that are lent as they are. */
  readonly whole: number;
  /** Bytes of blocks that slices are being copied of; who needs one more waits for its turn. */
  readonly sliced: number;
  /** Milliseconds for which a block is kept for the next slice. */
  readonly moment: number;
}

const LIMITS: LendingLimits = { whole: 64 * MIB, sliced: 32 * MIB, moment: 20 };

/** What all clients together hold. */
export class LendingBudget {
  readonly #limits: LendingLimits;
  readonly #turns: WeightedSemaphore;
  #whole = 0;
  #sliced = 0;

  constructor(limits: LendingLimits = LIMITS) {
    this.#limits = limits;
    this.#turns = new WeightedSemaphore(limits.sliced);
  }

  /** Bytes of blocks that are held at this moment. */
  get held(): number {
    return this.#whole + this.#sliced;
  }

  get moment(): number {
    return this.#limits.moment;
  }

  /** False when there is no room. */
  lend(bytes: number): boolean {
    if (this.#whole + bytes > this.#limits.whole) return false;
    this.#whole += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#whole -= bytes;
  }

  /** Undefined when it is the caller's turn at once. To be ended by `endTurn`. */
  turn(bytes: number): Promise<void> | undefined {
    const waiting = this.#turns.acquire(bytes);
    if (waiting !== undefined) return waiting.then(() => void (this.#sliced += bytes));
    this.#sliced += bytes;
    return undefined;
  }

  /** As `turn`, for whoever does not wait. */
  tryTurn(bytes: number): boolean {
    if (!this.#turns.isFree(bytes)) return false;
    this.turn(bytes);
    return true;
  }

  endTurn(bytes: number): void {
    this.#sliced -= bytes;
    this.#turns.release(bytes);
  }
}

const ofAllClients = new LendingBudget();

export interface LendingOptions {
  /** Takes back a piece, or a block, that nobody uses any more. */
  readonly release: (piece: Uint8Array) => void;
  /** Told when the client, or others, are waited for, and when that is over. */
  readonly waiting?: ((isWaiting: boolean) => void) | undefined;
  readonly budget?: LendingBudget | undefined;
}

type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

/**
 * What one client is lent. Whoever makes one calls `end` when the answer is over, complete or not.
 */
export class Lending {
  readonly #release: (piece: Uint8Array) => void;
  readonly #waiting: (isWaiting: boolean) => void;
  readonly #budget: LendingBudget;
  /** Bytes of each piece that is lent as it is. */
  readonly #whole = new Map<Uint8Array, number>();
  /** Copies that the client has not taken. */
  readonly #slices = new Set<Uint8Array>();
  #taken: (() => void) | undefined;
  #isOver = false;

  constructor({ release, waiting = () => undefined, budget = ofAllClients }: LendingOptions) {
    this.#release = release;
    this.#waiting = waiting;
    this.#budget = budget;
  }

  /**
   * Lends a piece as it is until `release`, or the end; false when there is no room, and it can be
   * read again later.
   */
  lend(piece: Uint8Array): boolean {
    const part = originOf(piece);
    return part === undefined || this.#isOver || this.#lendWhole(piece, part.capacity);
  }

  /**
   * The pieces as they are, or in slices. Whoever consumes them calls `release` with each that the
   * client has taken.
   */
  async *pieces(source: AsyncIterable<Uint8Array>): Pieces {
    for await (const piece of source) {
      if (this.#isOver) return;
      const part = originOf(piece);
      if (part === undefined || this.#lendWhole(piece, part.capacity)) yield piece;
      else yield* this.#sliced(part, piece);
    }
  }

  /**
   * Bytes of a piece that could not be lent, from `first` to `last`, in slices. The piece itself is
   * let go of.
   */
  again(piece: Uint8Array): (first: number, last: number) => Pieces {
    const part = originOf(piece) as BlockPart;
    return (first, last) => this.#sliced({ ...part, offset: part.offset + first, length: last - first + 1 }, undefined);
  }

  /** The client has taken this piece. */
  release(piece: Uint8Array): void {
    const capacity = this.#whole.get(piece);
    if (capacity !== undefined) {
      this.#whole.delete(piece);
      this.#budget.giveBack(capacity);
    } else if (this.#slices.delete(piece) && this.#slices.size === 0) this.#taken?.();
    this.#release(piece);
  }

  /** Nothing more is sent. */
  end(): void {
    this.#isOver = true;
    for (const capacity of this.#whole.values()) this.#budget.giveBack(capacity);
    this.#whole.clear();
    this.#taken?.();
  }

  #lendWhole(piece: Uint8Array, capacity: number): boolean {
    if (!this.#budget.lend(capacity)) return false;
    this.#whole.set(piece, capacity);
    return true;
  }

  async *#sliced(part: BlockPart, piece: Uint8Array | undefined): Pieces {
    const block = new KeptBlock(this.#budget, this.#release, part);
    try {
      if (piece !== undefined) block.use(piece);
      for (let at = 0; at < part.length && !this.#isOver; ) {
        const rest = (block.taken() ?? (await this.#readAgain(block)))?.subarray(at);
        if (rest === undefined) return;
        if (rest.length > SLICE_BYTES && this.#lendWhole(rest, part.capacity)) {
          block.handOver();
          yield rest;
          return;
        }
        // A copy: what the connection holds would else be the whole block.
        const slice = rest.slice(0, SLICE_BYTES);
        at += slice.length;
        if (at < part.length) block.keep();
        else block.letGo();
        this.#slices.add(slice);
        yield slice;
      }
    } finally {
      block.letGo();
    }
  }

  /** Once the client has taken what it was given. Undefined when the answer is over. */
  async #readAgain(block: KeptBlock): Promise<Uint8Array | undefined> {
    this.#waiting(true);
    if (this.#slices.size > 0) await new Promise<void>((resolve) => (this.#taken = resolve));
    this.#taken = undefined;
    if (!this.#isOver) await block.turn();
    this.#waiting(false);
    return this.#isOver ? undefined : block.read();
  }
}

/** The block that slices are copied of, while it is there. */
class KeptBlock {
  readonly #budget: LendingBudget;
  readonly #release: (piece: Uint8Array) => void;
  readonly #part: BlockPart;
  #piece: Uint8Array | undefined;
  #hasTurn = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(budget: LendingBudget, release: (piece: Uint8Array) => void, part: BlockPart) {
    this.#budget = budget;
    this.#release = release;
    this.#part = part;
  }

  /** For one slice, before anybody else has the event loop; longer by `keep`. */
  use(piece: Uint8Array): void {
    this.#piece = piece;
  }

  /** The bytes; undefined when they were let go of. */
  taken(): Uint8Array | undefined {
    clearTimeout(this.#timer);
    return this.#piece;
  }

  turn(): Promise<void> | undefined {
    const waiting = this.#budget.turn(this.#part.capacity);
    this.#hasTurn = true;
    return waiting;
  }

  async read(): Promise<Uint8Array> {
    const { again, offset, length } = this.#part;
    const bytes = await again();
    this.#piece = bytes.subarray(offset, offset + length);
    return this.#piece;
  }

  /** Keeps it for a moment, where there is room. */
  keep(): void {
    this.#hasTurn ||= this.#budget.tryTurn(this.#part.capacity);
    if (this.#hasTurn) this.#timer = setTimeout(() => this.letGo(), this.#budget.moment).unref();
    else this.letGo();
  }

  /** The piece is somebody else's from now on. */
  handOver(): void {
    this.#piece = undefined;
    this.letGo();
  }

  letGo(): void {
    clearTimeout(this.#timer);
    if (this.#piece !== undefined) this.#release(this.#piece);
    this.#piece = undefined;
    if (this.#hasTurn) this.#budget.endTurn(this.#part.capacity);
    this.#hasTurn = false;
  }
}
