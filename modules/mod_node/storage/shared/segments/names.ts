/** Names of segments and keys of their objects. */
import { hash } from "node:crypto";
import type { SegmentId } from "../log.ts";

export interface SegmentParts {
  readonly session: number;
  /** Number of segments that the session had begun before. */
  readonly number: number;
}

export const segmentId = ({ session, number }: SegmentParts): SegmentId =>
  `${session.toString(36)}-${number.toString(36)}`;

const idPattern = /^([0-9a-z]{1,10})-([0-9a-z]{1,10})$/;

/** Parses a segment id; undefined when it is not one. */
export function partsOf(id: string): SegmentParts | undefined {
  const [, session, number] = idPattern.exec(id) ?? [];
  if (session === undefined || number === undefined) return undefined;
  return { session: Number.parseInt(session, 36), number: Number.parseInt(number, 36) };
}

/** The first characters vary, because stores limit the number of requests per prefix. */
const folderOf = (id: SegmentId): string => hash("sha256", id).slice(0, 2);
export const carKey = (id: SegmentId): string => `${folderOf(id)}/${id}.car`;
export const indexKey = (id: SegmentId): string => `${folderOf(id)}/${id}.idx`;

/** Returns the key of a list of blocks. Its id belongs to no segment. */
export const listKey = (id: SegmentId): string => `${folderOf(id)}/${id}.cids`;

/**
 * Returns the objects of an item that `SharedLog.deletableObjects` returns: a segment, or the key
 * of a list.
 */
export const objectsOf = (id: string): readonly string[] => (id.endsWith(".cids") ? [id] : [carKey(id), indexKey(id)]);

const keyPattern = /^[0-9a-f]{2}\/([^/]+)\.(car|idx|cids)$/;

/** Returns the id in the key of an object; undefined for other keys. */
export function idOfKey(key: string): SegmentId | undefined {
  const id = keyPattern.exec(key)?.[1];
  return id === undefined || partsOf(id) === undefined ? undefined : id;
}

const oldListPattern = /^[0-9a-f]{2}\/[0-9a-f]{64}\.cids$/;

/**
 * Whether the key belongs to a list. Its name is an id, or a hash up to version 2 of the tables;
 * hosts no longer write the latter.
 */
export const isListKey = (key: string): boolean =>
  oldListPattern.test(key) || (key.endsWith(".cids") && idOfKey(key) !== undefined);

/** Returns the session that writes this object; undefined for other keys. */
export function sessionOfKey(key: string): number | undefined {
  const id = idOfKey(key);
  return id === undefined ? undefined : partsOf(id)?.session;
}
