/**
 * The memory into which a connection is read. Node.js would allocate 64 KiB for each read, and V8
 * starts a full garbage collection after every 64 MiB: most of the CPU time of a large response.
 */

const SLAB_BYTES = 256 * 1024;
/** A slab with less room than this is not read into. */
const MIN_ROOM_BYTES = 64 * 1024;
/** Smaller pieces are copied, so that a few bytes do not keep a whole slab. */
const MIN_LEASED_BYTES = 16 * 1024;
/** Maximum number of slabs that wait for their next use, over all connections. */
const MAX_FREE = 16;

interface Slab {
  readonly memory: Buffer;
  /** Number of pieces that were kept and not released. */
  leases: number;
}

const free: Slab[] = [];

/** A slab whose pieces are not all released is left to the garbage collector. */
const slabs = new WeakMap<ArrayBufferLike, Slab>();

function takeSlab(): Slab {
  const known = free.pop();
  if (known !== undefined) return known;
  const memory = Buffer.allocUnsafeSlow(SLAB_BYTES);
  const slab = { memory, leases: 0 };
  slabs.set(memory.buffer, slab);
  return slab;
}

function freeSlab(slab: Slab): void {
  if (free.length < MAX_FREE) free.push(slab);
}

export class ReadMemory {
  #slab = takeSlab();
  /** Where the bytes begin that are not handled yet, and where they end. */
  #from = 0;
  #to = 0;

  /** Returns the memory for the next read. */
  room(): Buffer {
    const slab = this.#slab;
    const { memory } = slab;
    if (this.#from === this.#to && slab.leases === 0) this.#from = this.#to = 0;
    else if (memory.length - this.#to < MIN_ROOM_BYTES) {
      const next = takeSlab();
      this.#to = memory.copy(next.memory, 0, this.#from, this.#to);
      this.#from = 0;
      this.#slab = next;
      if (slab.leases === 0) freeSlab(slab);
    }
    return this.#to === 0 ? this.#slab.memory : this.#slab.memory.subarray(this.#to);
  }

  /** Returns all bytes that are not handled yet, after this number of bytes was read. */
  filled(bytes: number): Buffer {
    this.#to += bytes;
    return this.#slab.memory.subarray(this.#from, this.#to);
  }

  handled(bytes: number): void {
    this.#from += bytes;
  }

  /** Returns the bytes of a piece of what was read last, which do not change until `release`. */
  keep(piece: Buffer): Buffer {
    if (piece.length < MIN_LEASED_BYTES) return Buffer.from(piece);
    this.#slab.leases += 1;
    return piece;
  }

  /** Ends the use of a piece. Must be called once for each. */
  release({ buffer }: Uint8Array): void {
    const slab = slabs.get(buffer);
    if (slab === undefined) return;
    slab.leases -= 1;
    if (slab.leases === 0 && slab !== this.#slab) freeSlab(slab);
  }

  /** The connection is closed. */
  close(): void {
    const slab = this.#slab;
    this.#slab = { memory: Buffer.alloc(0), leases: 0 };
    if (slab.leases === 0) freeSlab(slab);
  }
}
