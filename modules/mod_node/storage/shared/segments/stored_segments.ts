/** Segments as they are in the object store, past the cache of this host. */
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

/** Whether an object is not there, or shorter than it was written. */
export const isLost = (error: unknown): error is NodeError =>
  NodeError.is(error) && (error.code === "SEGMENT_GONE" || error.code === "OBJECT_CUT_OFF");

/** The CAR file of a segment. Its reads reject with SEGMENT_GONE when there is no such object. */
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
      let from = 0;
      for (const part of into) {
        part.set(read.subarray(from, from + part.length));
        from += part.length;
      }
      return length;
    },
  };
}
