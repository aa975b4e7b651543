/** Reads tar archives as they come: USTAR, with the long names and sizes of PAX and GNU. */

/** Bytes of a block, the unit of an archive. */
const BLOCK = 512;
/** Maximum bytes of the PAX records or the long name before a header. */
const MAX_SPECIAL = 1024 * 1024;

export interface TarEntry {
  /**
   * Text with one character for each byte, because names need not be UTF-8. The same holds for
   * `linkname`.
   */
  readonly name: string;
  /**
   * `file`, `directory`, `symlink`, `link`, `character-device`, `block-device` or `fifo`; otherwise
   * the type letter in the archive.
   */
  readonly type: string;
  readonly linkname: string;
  readonly mode: number;
  readonly size: number;
  /** Can be read once, before the next entry is requested. The unread rest is skipped. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The source is not a tar archive, or ends too early. */
export class TarError extends Error {}

const types: Readonly<Record<string, string>> = {
  "\0": "file",
  0: "file",
  1: "link",
  2: "symlink",
  3: "character-device",
  4: "block-device",
  5: "directory",
  6: "fifo",
  7: "file",
};

/** Types that have no content, even if the header gives a size. */
const bodiless: ReadonlySet<string> = new Set(["1", "2", "3", "4", "5", "6"]);

/** Values from the special headers before an entry, which override the entry's own header. */
interface Ahead {
  name?: string;
  linkname?: string;
  size?: number;
}

/**
 * Yields the entries in order. Reads the source to its end, which may be after the end of the
 * archive.
 *
 * @throws TarError /
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, undefined> {
  const bytes = new Bytes(source);
  let ahead: Ahead = {};
  try {
    for (let block = await bytes.block(); block?.some((byte) => byte !== 0); block = await bytes.block()) {
      requireChecksum(block);
      const flag = String.fromCharCode(block[156] as number);
      const size = numberAt(block, 124, 12);
      if ("xgLK".includes(flag)) {
        ahead = { ...ahead, ...(await specialFacts(flag, size, bytes)) };
        continue;
      }
      const whole = { ...fieldsOf(block), size: bodiless.has(flag) ? 0 : size, ...ahead };
      ahead = {};
      const body = bytes.stream(whole.size);
      yield { ...whole, type: types[flag] ?? flag, body };
      for await (const _ of body);
      await bytes.skip(padding(whole.size));
    }
    await bytes.drain();
  } finally {
    await bytes.close();
  }
}

async function specialFacts(flag: string, size: number, bytes: Bytes): Promise<Ahead> {
  if (size > MAX_SPECIAL) throw new TarError(`The archive has a name of ${size} bytes, which is too long`);
  const content = await bytes.take(size);
  await bytes.skip(padding(size));
  if (flag === "x") return recordsIn(content);
  if (flag === "g") return {};
  const text = textOf(content);
  return flag === "L" ? { name: text } : { linkname: text };
}

/** Records of the form `LENGTH KEY=VALUE\n`. */
function recordsIn(content: Buffer): Ahead {
  const facts: Ahead = {};
  for (let at = 0; at < content.length; ) {
    const [, digits = ""] = /^(\d{1,7}) /.exec(content.subarray(at, at + 8).toString("latin1")) ?? [];
    const end = at + Number(digits);
    const record = content.subarray(at + digits.length + 1, end - 1).toString("latin1");
    const [, key, value = ""] = /^([^=]+)=(.*)$/s.exec(record) ?? [];
    if (digits === "" || key === undefined || end > content.length) throw new TarError("The archive is damaged");
    if (key === "path") facts.name = value;
    else if (key === "linkpath") facts.linkname = value;
    else if (key === "size" && /^\d{1,15}$/.test(value)) facts.size = Number(value);
    at = end;
  }
  return facts;
}

function fieldsOf(block: Buffer) {
  const isUstar = block.toString("latin1", 257, 262) === "ustar";
  const prefix = isUstar && block[262] === 0 ? textOf(block.subarray(345, 500)) : "";
  const name = textOf(block.subarray(0, 100));
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    linkname: textOf(block.subarray(157, 257)),
    mode: numberAt(block, 100, 8),
  };
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString("latin1", 0, end < 0 ? field.length : end);
}

/** Parses octal digits, or the bytes after a first byte whose highest bit is set. */
function numberAt(block: Buffer, at: number, length: number): number {
  const first = block[at] as number;
  if ((first & 0x80) !== 0) {
    const number = Number(BigInt(`0x${block.toString("hex", at + 1, at + length)}`));
    if (first === 0x80 && Number.isSafeInteger(number)) return number;
    throw new TarError("The archive is damaged: a number is too large");
  }
  const digits = block.toString("latin1", at, at + length).replace(/^[ \0]+|[ \0].*$/gs, "");
  if (!/^[0-7]*$/.test(digits)) throw new TarError("The archive is damaged: a field is not a number");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

/** The checksum is the sum of all bytes of the header, with its own field counted as blanks. */
function requireChecksum(block: Buffer): void {
  let sum = 8 * 32;
  for (const [at, byte] of block.entries()) if (at < 148 || at >= 156) sum += byte;
  if (sum !== numberAt(block, 148, 8)) throw new TarError("This is not a tar archive, or it is damaged");
}

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

/** Reads a source in pieces of a given number of bytes. */
class Bytes {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);
  #isOver = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async close(): Promise<void> {
    if (!this.#isOver) await this.#source.return?.();
  }

  /** Resolves to undefined at the end. @throws TarError in the middle of a block */
  async block(): Promise<Buffer | undefined> {
    return (await this.#fill()) ? this.take(BLOCK) : undefined;
  }

  async take(length: number): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.stream(length)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.stream(length));
  }

  /** Yields the next bytes as they arrive. @throws TarError if the source ends too early */
  async *stream(length: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let left = length; left > 0; ) {
      if (!(await this.#fill())) throw new TarError("The archive ends too early");
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  async drain(): Promise<void> {
    while (await this.#fill()) this.#rest = this.#rest.subarray(this.#rest.length);
  }

  /** Resolves to whether there is another byte. */
  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#isOver) {
      const next = await this.#source.next();
      if (next.done === true) this.#isOver = true;
      else this.#rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    return this.#rest.length > 0;
  }
}
