/** Names of segments, and the keys of their objects. */
import { hash } from "node:crypto";
import type { SegmentId } from "../log.ts";

export interface SegmentParts {
  readonly session: number;
  /** Segments that the session had begun before. */
  readonly number: number;
}

export const segmentId = ({ session, number }: SegmentParts): SegmentId =>
  `${session.toString(36)}-${number.toString(36)}`;

const idPattern = /^([0-9a-z]{1,10})-([0-9a-z]{1,10})$/;

/** Undefined for what is no id. */
export function partsOf(id: string): SegmentParts | undefined {
  const [, session, number] = idPattern.exec(id) ?? [];
  if (session === undefined || number === undefined) return undefined;
  return { session: Number.parseInt(session, 36), number: Number.parseInt(number, 36) };
}

/** The first characters spread: stores limit the requests for each prefix. */
const folderOf = (id: SegmentId): string => hash("sha256", id).slice(0, 2);
export const carKey = (id: SegmentId): string => `${folderOf(id)}/${id}.car`;
export const indexKey = (id: SegmentId): string => `${folderOf(id)}/${id}.idx`;

const keyPattern = /^[0-9a-f]{2}\/([^/]+)\.(car|idx)$/;

/** The segment that an object belongs to; undefined for the key of something else. */
export function segmentOfKey(key: string): SegmentId | undefined {
  const id = keyPattern.exec(key)?.[1];
  return id === undefined || partsOf(id) === undefined ? undefined : id;
}

/** The session that writes this object; undefined for the key of something else. */
export function sessionOfKey(key: string): number | undefined {
  const id = segmentOfKey(key);
  return id === undefined ? undefined : partsOf(id)?.session;
}
