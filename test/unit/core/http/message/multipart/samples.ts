import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { readParts } from "#core/http/message/multipart/parts.ts";
import { ModhostError } from "#core/util/errors.ts";

export const boundary = "----form7MA4YWxkTrZu0gW";
export const contentType = `multipart/form-data; boundary=${boundary}`;

export interface Sample {
  readonly head: string;
  readonly body: string | Buffer;
}

export function encode(parts: readonly Sample[], { epilogue = "", prologue = "", mark = boundary } = {}): Buffer {
  const pieces: (string | Buffer)[] = [prologue];
  for (const { head, body } of parts) pieces.push(`--${mark}\r\n${head}\r\n\r\n`, body, "\r\n");
  return Buffer.concat([...pieces, `--${mark}--\r\n`, epilogue].map((piece) => Buffer.from(piece)));
}

export function field(name: string, body: string | Buffer = "x"): Sample {
  return { head: `Content-Disposition: form-data; name="${name}"`, body };
}

export async function* chunks(bytes: Buffer, size: () => number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const end = at + size();
    yield Buffer.from(bytes.subarray(at, end));
    at = end;
  }
}

/** A source whose chunks are overwritten when the next one is requested. */
const serving = (source: AsyncIterable<Buffer>) => ({
  async *passing(): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      yield chunk;
      chunk.fill("!");
    }
  },
});

async function partsOf(source: Parameters<typeof readParts>[0], type: string) {
  const all: { name: string | undefined; filename: string | undefined; body: Buffer }[] = [];
  for await (const part of readParts(source, type)) {
    all.push({ name: part.name, filename: part.filename, body: await part.bytes() });
  }
  return all;
}

/** Returns the parts, and checks that they are the same when the memory of chunks is reused. */
export async function readAll(bytes: Buffer, type = contentType, size: () => number = () => 65_536) {
  const sizes: number[] = [];
  const noted = () => {
    sizes.push(size());
    return sizes.at(-1) as number;
  };
  const parts = await partsOf(chunks(bytes, noted), type);
  assert.deepEqual(await partsOf(serving(chunks(bytes, () => sizes.shift() as number)), type), parts);
  return parts;
}

/**
 * A source that counts how much was read from it, and remembers whether the reading was stopped.
 */
export class Counted implements AsyncIterable<Buffer> {
  taken = 0;
  returned = false;
  readonly #chunks: Iterator<Buffer>;

  constructor(chunks: Iterable<Buffer>) {
    this.#chunks = chunks[Symbol.iterator]();
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return {
      next: async () => {
        await setImmediate();
        const next = this.#chunks.next();
        if (next.done !== true) this.taken += next.value.length;
        return next;
      },
      return: async () => {
        this.returned = true;
        return { done: true, value: undefined };
      },
    };
  }
}

export const isInvalid = (reason: RegExp) => (error: unknown) =>
  ModhostError.is(error) && error.code === "MULTIPART_INVALID" && error.status === 400 && reason.test(error.message);
