/** What the files of LevelDB and of Pebble have in common: numbers, texts and checksums. */

/**
 * A file of a database that does not hold what it must; the message that is shown names the file.
 */
export class DatabaseDamaged extends Error {
  override readonly name = "DatabaseDamaged";
  /** The file, where the message names it: what reads a part of one does not know which it is. */
  readonly path: string | undefined;

  constructor(message: string, path?: string) {
    super(message);
    this.path = path;
  }
}

const castagnoli = 0x82f63b78;
const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ castagnoli : value >>> 1;
  return value;
});

/**
 * CRC-32C as LevelDB stores it: rotated, plus a constant, since a checksum of checksums says
 * little.
 */
export function maskedCrc(bytes: Uint8Array): number {
  let crc = -1;
  for (let at = 0; at < bytes.length; at += 1) {
    crc = (crc >>> 8) ^ (crcTable[(crc ^ (bytes[at] as number)) & 0xff] as number);
  }
  const whole = ~crc >>> 0;
  return (((whole >>> 15) | (whole << 17)) + 0xa282ead8) >>> 0;
}

/**
 * Adds up the keys that are made of a block. They have much in common, which is stored once: a
 * small block that was made to do harm would have keys without end.
 */
export class KeyBytes {
  #left: number;

  constructor(block: Uint8Array) {
    this.#left = block.length * MAX_KEY_RATIO + MAX_SHORT_KEYS;
  }

  /** @throws DatabaseDamaged for more than any block has that Kubo writes */
  add(length: number): void {
    this.#left -= length;
    if (this.#left < 0) throw new DatabaseDamaged("a block has more keys than it can have");
  }
}

/**
 * Bytes of keys for each byte of their block, and of any block. Kubo's keys have about a hundred.
 */
const MAX_KEY_RATIO = 256;
const MAX_SHORT_KEYS = 64 * 1024;

/** Where a block is in a table. */
export interface Handle {
  readonly offset: number;
  readonly size: number;
}

/** Reads one field after the other. Every method throws DatabaseDamaged past the end. */
export class Fields {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  get atEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  /** Bytes with their length before them. */
  text(): Uint8Array {
    return this.take(this.varint());
  }

  take(length: number): Uint8Array {
    const end = this.at + length;
    if (end > this.#bytes.length) throw new DatabaseDamaged("a list is cut off");
    const taken = this.#bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }

  byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new DatabaseDamaged("a list is cut off");
    return byte;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }

  handle(): Handle {
    return { offset: this.varint(), size: this.varint() };
  }
}
