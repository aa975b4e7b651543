/** Reads segments from the object store without the cache of this host. */
import { failure, NodeError } from "../../../util/errors.ts";
import type { SegmentFile } from "../../blockstore/segments/files.ts";
import type { ReadableSegments } from "../../blockstore/segments/read_coalescer.ts";
import type { SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { carKey } from "./names.ts";

export interface StoredSegment {
  readonly id: SegmentId;
  /** Length of the CAR file. */
  readonly bytes: number;
}

export const storedSegments = (
  objects: ObjectStore,
  find: (segment: number) => StoredSegment | undefined,
): ReadableSegments => ({
  use(segment, use) {
    const found = find(segment);
    if (found === undefined) return Promise.reject(failure("SEGMENT_GONE", { id: String(segment) }));
    return use(storedFile(objects, found));
  },
  ready: () => undefined,
});

export const isGone = (error: unknown): boolean => NodeError.is(error) && error.code === "SEGMENT_GONE";

/** Whether an error says that an object is missing or truncated. */
export const isLost = (error: unknown): error is NodeError =>
  NodeError.is(error) && (error.code === "SEGMENT_GONE" || error.code === "OBJECT_CUT_OFF");

/**
 * Returns the CAR file of a segment. Its reads reject with SEGMENT_GONE when the object does not
 * exist.
 */
export function storedFile(objects: ObjectStore, { id, bytes }: StoredSegment): Pick<SegmentFile, "read"> {
  return {
    async read(into, at) {
      const wanted = into.reduce((sum, { length }) => sum + length, 0);
      const length = Math.min(wanted, bytes - at);
      if (length <= 0) return 0;
      const [whole] = into.length === 1 ? into : [];
      const read = await objects.read(carKey(id), { start: at, length }, { into: whole });
      if (read === undefined) throw failure("SEGMENT_GONE", { id });
      if (whole !== undefined) return length;
      scatter(read, into);
      return length;
    },
  };
}

/** Bytes of a request of `inStretches`. */
const STRETCH_BYTES = 4 * 1024 * 1024;

/**
 * Makes the segments of the store readable for a caller that reads each from its beginning: one
 * request fetches the following blocks as well.
 */
export function inStretches(
  objects: ObjectStore,
  find: (segment: number) => StoredSegment | undefined,
): ReadableSegments {
  let last: {
    readonly id: SegmentId;
    readonly start: number;
    readonly end: number;
    readonly bytes: Promise<Uint8Array>;
  };
  const stretch = ({ id, bytes: size }: StoredSegment, at: number, length: number) => {
    if (last?.id === id && at >= last.start && at + length <= last.end) return last;
    const end = Math.min(size, at + Math.max(length, STRETCH_BYTES));
    const bytes = objects.read(carKey(id), { start: at, length: end - at }).then((read) => {
      if (read === undefined) throw failure("SEGMENT_GONE", { id });
      return read;
    });
    last = { id, start: at, end, bytes };
    return last;
  };
  return {
    use(segment, use) {
      const found = find(segment);
      if (found === undefined) return Promise.reject(failure("SEGMENT_GONE", { id: String(segment) }));
      return use({
        async read(into, at) {
          const wanted = into.reduce((sum, { length }) => sum + length, 0);
          const length = Math.min(wanted, found.bytes - at);
          if (length <= 0) return 0;
          const { start, bytes } = stretch(found, at, length);
          const read = (await bytes).subarray(at - start, at - start + length);
          scatter(read, into);
          return length;
        },
      });
    },
    ready: () => undefined,
  };
}

function scatter(bytes: Uint8Array, into: readonly Uint8Array[]): void {
  let from = 0;
  for (const part of into) {
    part.set(bytes.subarray(from, from + part.length));
    from += part.length;
  }
}
