/** Numbers, strings and checksums as LevelDB and Pebble store them. */

/** Thrown for a damaged file of a database. The message that users see names the file. */
export class DatabaseDamaged extends Error {
  override readonly name = "DatabaseDamaged";
  /** The file, if the message names it. Code that reads a part of a file does not know its path. */
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
 * Returns the masked CRC-32C of LevelDB. It is rotated and a constant is added, because LevelDB
 * avoids checksums of data that contains checksums.
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
 * Limits the total length of the keys of one block. Keys share prefixes that are stored only once,
 * so a small malicious block could expand to an unlimited amount of memory.
 */
export class KeyBytes {
  #left: number;

  constructor(block: Uint8Array) {
    this.#left = block.length * MAX_KEY_RATIO + MAX_SHORT_KEYS;
  }

  /**
   * Counts a key of this length.
   * @throws DatabaseDamaged if the block has more than any block that Kubo writes
   */
  add(length: number): void {
    this.#left -= length;
    if (this.#left < 0) throw new DatabaseDamaged("a block has more keys than its size allows");
  }
}

/**
 * Maximum bytes of keys for each byte of their block. Kubo's keys need about a hundred.
 */
const MAX_KEY_RATIO = 256;
/** Bytes of keys that every block may have in addition, however short it is. */
const MAX_SHORT_KEYS = 64 * 1024;

/** Position of a block in a table. */
export interface Handle {
  readonly offset: number;
  readonly size: number;
}

/** Reads one field after another. Every method throws DatabaseDamaged past the end. */
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

  /** Reads bytes that follow their length. */
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
