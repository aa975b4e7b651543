/** Encodes the entries of a commit: JSON, followed by the bytes that it refers to. */
import { Buffer } from "node:buffer";
import type { Entry } from "./log.ts";

/** Stands for bytes in the JSON; `$` is their number. */
interface Blob {
  readonly $: number;
}

export function encodeEntries(entries: readonly Entry[]): Buffer {
  const blobs: Uint8Array[] = [];
  const plain = JSON.stringify(entries, function (this: Record<string, unknown>, key, value) {
    // For a Buffer, `value` is already the result of its `toJSON`.
    const given = this[key];
    if (!(given instanceof Uint8Array)) return value;
    blobs.push(given);
    return { $: given.length } satisfies Blob;
  });
  const head = Buffer.from(plain);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  return Buffer.concat([length, head, ...blobs]);
}

/** Decodes entries; undefined when the bytes are damaged. */
export function decodeEntries(bytes: Buffer): Entry[] | undefined {
  try {
    return entriesIn(bytes);
  } catch {
    return undefined;
  }
}

function entriesIn(bytes: Buffer): Entry[] {
  const end = 4 + bytes.readUInt32BE(0);
  let at = end;
  // The reviver visits values in the order in which they were written, except that it visits inner
  // values first. Byte values have no inner values, so their order is right.
  const entries: Entry[] = JSON.parse(bytes.toString("utf8", 4, end), (_key, value) => {
    if (typeof value !== "object" || value === null || typeof value.$ !== "number") return value;
    return Uint8Array.from(bytes.subarray(at, (at += value.$)));
  });
  return entries.map((entry) =>
    entry.kind === "metadata"
      ? { kind: "metadata", changes: entry.changes.map(([key, value]) => [key, value ?? undefined] as const) }
      : entry,
  );
}

/**
 * Returns the key of the object that an entry refers to: a list of blocks that is too long for the
 * entry.
 */
export function listIn(entry: Entry): string | undefined {
  if (!("epoch" in entry)) return undefined;
  const list = entry.kind === "condemned" ? entry.list : entry.rescued;
  return "object" in list ? list.object : undefined;
}
