/**
 * Encodes and decodes text in a base that is not a power of two, such as base58 and base36. In such
 * a base the bytes are one large number. The textbook method, which works digit by digit on the
 * whole number, takes quadratic time: minutes for a text of 200 KB.
 */

/**
 * Maximum number of bytes to encode, and maximum number that a text may decode to; anything longer
 * is an error. Digests, keys and peer ids have fewer than 100 bytes. Only identity CIDs made with a
 * large `inline-limit` come near this limit. Bases that are a power of two have no limit.
 */
export const MAX_BASE_X_BYTES = 8 * 1024;

/** The product of a number below 2^29 and a 24-bit limb, plus a carry, is exact in a double. */
const LIMB_BITS = 24;
const LIMB = 2 ** LIMB_BITS;
const GROUP_BITS = 28.9;
/**
 * Numbers with more digits or bytes are split in halves with bigints, which then costs as much as
 * one multiplication.
 */
const MAX_SHORT = 256;
/**
 * Numbers of at most this many bytes, such as CIDs and peer ids, are encoded with a lookup table.
 */
const MAX_TABLED = 40;
/**
 * The sum of 16-bit words times groups below 2^30, over all words of such a number, is exact in a
 * double.
 */
const MAX_GROUP_BITS = 30;
const NO_DIGIT = 255;

export class BaseX {
  readonly #alphabet: string;
  readonly #name: string;
  readonly #base: number;
  readonly #zero: string;
  readonly #values: Uint8Array;
  /** Number of digits converted at once: here with limbs, in `#bigGroup` with bigints. */
  readonly #group: number;
  readonly #bigGroup: number;
  readonly #maxDigits: number;
  #table: WordTable | undefined;

  /**
   * `alphabet` lists the digits in order of their value. If `caseInsensitive` is set, both cases of
   * a letter are accepted; the case of the alphabet is written.
   */
  constructor(alphabet: string, name: string, caseInsensitive = false) {
    const bitsPerDigit = Math.log2(alphabet.length);
    this.#alphabet = alphabet;
    this.#name = name;
    this.#base = alphabet.length;
    this.#zero = alphabet.charAt(0);
    this.#values = digitValues(alphabet, caseInsensitive);
    this.#group = Math.floor(GROUP_BITS / bitsPerDigit);
    this.#bigGroup = Math.floor(53 / bitsPerDigit);
    this.#maxDigits = Math.ceil((MAX_BASE_X_BYTES * 8) / bitsPerDigit);
  }

  /**
   * @throws SyntaxError for a character that is not in the alphabet, RangeError for a text that is
   * too long
   */
  decode(text: string): Uint8Array<ArrayBuffer> {
    const values = this.#values;
    if (text.length > this.#maxDigits) {
      throw new RangeError(`${text.length} characters are too many for ${this.#name}: take base32`);
    }
    for (let at = 0; at < text.length; at += 1) {
      if ((values[text.charCodeAt(at)] ?? NO_DIGIT) === NO_DIGIT) throw new SyntaxError(`Non-${this.#name} character`);
    }
    const zeros = this.#zerosOf(text);
    const number = text.length - zeros > MAX_SHORT ? this.#decodeLong(text, zeros) : this.#decodeShort(text, zeros);
    if (zeros === 0) return number;
    const bytes = new Uint8Array(zeros + number.length);
    bytes.set(number, zeros);
    return bytes;
  }

  /** @throws RangeError if there are too many bytes */
  encode(bytes: Uint8Array): string {
    if (bytes.length > MAX_BASE_X_BYTES) {
      throw new RangeError(`${bytes.length} bytes are too many for ${this.#name}: take base32`);
    }
    let zeros = 0;
    while (zeros < bytes.length && bytes[zeros] === 0) zeros += 1;
    const leading = this.#zero.repeat(zeros);
    if (zeros === bytes.length) return leading;
    if (bytes.length - zeros <= MAX_TABLED) {
      this.#table ??= new WordTable(this.#alphabet);
      return leading + this.#table.encode(bytes, zeros);
    }
    const digits = bytes.length - zeros > MAX_SHORT ? this.#encodeLong(bytes, zeros) : this.#encodeShort(bytes, zeros);
    return leading + digits.slice(this.#zerosOf(digits));
  }

  #zerosOf(digits: string): number {
    let zeros = 0;
    while (digits[zeros] === this.#zero) zeros += 1;
    return zeros;
  }

  /** Returns the value of the digits from `from` to `to`, which is below 2^53. */
  #numberAt(text: string, from: number, to: number): number {
    let number = 0;
    for (let at = from; at < to; at += 1) number = number * this.#base + (this.#values[text.charCodeAt(at)] as number);
    return number;
  }

  #digitsOf(number: number, count: number): string {
    let digits = "";
    for (let rest = number, left = count; left > 0; left -= 1) {
      digits = this.#alphabet.charAt(rest % this.#base) + digits;
      rest = Math.floor(rest / this.#base);
    }
    return digits;
  }

  #decodeShort(text: string, from: number): Uint8Array<ArrayBuffer> {
    const limbs: number[] = [];
    const first = (text.length - from) % this.#group || this.#group;
    for (let at = from, to = from + first; at < text.length; at = to, to += this.#group) {
      multiplyAdd(limbs, this.#base ** (to - at), this.#numberAt(text, at, to), LIMB);
    }
    const bytes = new Uint8Array(limbs.length * 3);
    for (const [at, limb] of limbs.entries()) {
      const end = bytes.length - at * 3;
      bytes[end - 1] = limb & 0xff;
      bytes[end - 2] = (limb >> 8) & 0xff;
      bytes[end - 3] = limb >> 16;
    }
    const start = bytes.findIndex((byte) => byte !== 0);
    return start < 0 ? bytes.slice(0, 0) : bytes.slice(start);
  }

  /**
   * Joins neighbouring numbers in pairs until one is left: each round halves their count and
   * doubles their length.
   */
  #decodeLong(text: string, from: number): Uint8Array<ArrayBuffer> {
    let numbers: bigint[] = [];
    for (let to = text.length; to > from; to -= this.#bigGroup) {
      numbers.push(BigInt(this.#numberAt(text, Math.max(from, to - this.#bigGroup), to)));
    }
    for (let digits = this.#bigGroup; numbers.length > 1; digits *= 2) {
      const power = BigInt(this.#base) ** BigInt(digits);
      const joined: bigint[] = [];
      for (let at = 0; at < numbers.length; at += 2) {
        joined.push((numbers[at] as bigint) + (numbers[at + 1] ?? 0n) * power);
      }
      numbers = joined;
    }
    const hex = (numbers[0] as bigint).toString(16);
    return new Uint8Array(Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex"));
  }

  #encodeShort(bytes: Uint8Array, from: number): string {
    const groups: number[] = [];
    const size = this.#base ** this.#group;
    let at = from;
    for (let ahead = (bytes.length - from) % 3; ahead > 0; ahead -= 1) {
      multiplyAdd(groups, 256, bytes[at++] as number, size);
    }
    for (; at < bytes.length; at += 3) {
      const limb = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
      multiplyAdd(groups, LIMB, limb, size);
    }
    let digits = "";
    for (let index = groups.length - 1; index >= 0; index -= 1)
      digits += this.#digitsOf(groups[index] as number, this.#group);
    return digits;
  }

  #encodeLong(bytes: Uint8Array, from: number): string {
    const number = BigInt(`0x${Buffer.from(bytes.subarray(from)).toString("hex")}`);
    const powers = [BigInt(this.#base) ** BigInt(this.#bigGroup)];
    for (let last = powers[0] as bigint; last * last <= number; last = powers.at(-1) as bigint)
      powers.push(last * last);
    const split = (part: bigint, level: number): string => {
      if (level < 0) return this.#digitsOf(Number(part), this.#bigGroup);
      const power = powers[level] as bigint;
      const high = part / power;
      return split(high, level - 1) + split(part - high * power, level - 1);
    };
    return split(number, powers.length - 1);
  }
}

/**
 * Encodes short numbers. The table holds the digits of every power of 65536, in groups, so that
 * encoding a number only multiplies and adds groups.
 */
class WordTable {
  readonly #base: number;
  /** Number of digits in a group. */
  readonly #digits: number;
  readonly #size: number;
  /**
   * For each 16-bit word, counted from the end of the number: the groups of its power of 65536,
   * least significant group first.
   */
  readonly #powers: readonly Float64Array[];
  readonly #codes: Uint8Array;
  readonly #sums: Float64Array;
  readonly #text: Buffer;

  constructor(alphabet: string) {
    const bits = Math.log2(alphabet.length);
    this.#base = alphabet.length;
    this.#digits = Math.floor(MAX_GROUP_BITS / bits);
    this.#size = alphabet.length ** this.#digits;
    this.#codes = Buffer.from(alphabet);
    const groups = Math.ceil((MAX_TABLED * 8) / (bits * this.#digits));
    this.#powers = Array.from({ length: MAX_TABLED / 2 }, (_, word) => groupsOf(65536n ** BigInt(word), this.#size));
    this.#sums = new Float64Array(groups);
    this.#text = Buffer.allocUnsafeSlow(groups * this.#digits);
  }

  /** Returns the digits of a number whose first byte is not zero. */
  encode(bytes: Uint8Array, from: number): string {
    const sums = this.#sums;
    sums.fill(0);
    for (let end = bytes.length, word = 0; end > from; end -= 2, word += 1) {
      const value = (bytes[end - 1] as number) | (end - 1 > from ? (bytes[end - 2] as number) << 8 : 0);
      const powers = this.#powers[word] as Float64Array;
      for (let group = 0; group < powers.length; group += 1)
        sums[group] = (sums[group] as number) + value * (powers[group] as number);
    }
    const text = this.#text;
    const codes = this.#codes;
    const base = this.#base;
    let at = text.length;
    for (let group = 0, carry = 0; group < sums.length; group += 1) {
      const sum = (sums[group] as number) + carry;
      carry = Math.floor(sum / this.#size);
      // The value is below 2^30, so the processor can use fast integer arithmetic.
      let rest = (sum - carry * this.#size) | 0;
      for (const first = at - this.#digits; at > first; ) {
        const higher = (rest / base) | 0;
        text[--at] = codes[rest - higher * base] as number;
        rest = higher;
      }
    }
    while (text[at] === codes[0]) at += 1;
    return text.toString("latin1", at);
  }
}

/** Splits a number into groups below `size`, least significant group first. */
function groupsOf(number: bigint, size: number): Float64Array {
  const groups: number[] = [];
  for (let rest = number; rest > 0n; rest /= BigInt(size)) groups.push(Number(rest % BigInt(size)));
  return Float64Array.from(groups);
}

function digitValues(alphabet: string, caseInsensitive: boolean): Uint8Array {
  const values = new Uint8Array(128).fill(NO_DIGIT);
  for (const [value, letter] of [...alphabet].entries()) {
    for (const each of caseInsensitive ? [letter.toLowerCase(), letter.toUpperCase()] : [letter]) {
      values[each.charCodeAt(0)] = value;
    }
  }
  return values;
}

/**
 * Multiplies a number by `factor` and adds `addend`, in place. The least significant limb comes
 * first.
 */
function multiplyAdd(limbs: number[], factor: number, addend: number, limbSize: number): void {
  let carry = addend;
  for (let at = 0; at < limbs.length; at += 1) {
    const product = (limbs[at] as number) * factor + carry;
    carry = Math.floor(product / limbSize);
    limbs[at] = product - carry * limbSize;
  }
  for (; carry > 0; carry = Math.floor(carry / limbSize)) limbs.push(carry % limbSize);
}
