/** Bodies for uploads: made while they are sent, different for each seed. */
import { keystream } from "../../support/content.ts";
import type { Upload } from "./client.ts";

const boundary = "----------------------------bench4096";
const type = `multipart/form-data; boundary=${boundary}`;
const end = Buffer.from(`--${boundary}--\r\n`);
const newline = Buffer.from("\r\n");

/** One file. */
export function file(size: number, seed: number): Upload {
  const before = header("file");
  return {
    type,
    length: before.length + size + newline.length + end.length,
    *pieces() {
      yield before;
      yield* keystream(size, seed);
      yield newline;
      yield end;
    },
  };
}

/** A directory of `count` files of `size` bytes each. */
export function tree(count: number, size: number, seed: number): Upload {
  const folder = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="tree"\r\nContent-Type: application/x-directory\r\n\r\n\r\n`,
  );
  const headers = Array.from({ length: count }, (_, at) => header(`tree%2Ff${at}`));
  const contents = Buffer.concat([...keystream(count * size, seed)]);
  return {
    type,
    length: folder.length + headers.reduce((sum, { length }) => sum + length + size + newline.length, 0) + end.length,
    *pieces() {
      yield folder;
      // As clients do it: what is small goes out together.
      let held: Uint8Array[] = [];
      for (const [at, before] of headers.entries()) {
        held.push(before, contents.subarray(at * size, (at + 1) * size), newline);
        if (at % 16 !== 15) continue;
        yield Buffer.concat(held);
        held = [];
      }
      yield Buffer.concat([...held, end]);
    },
  };
}

const header = (name: string) =>
  Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  );
