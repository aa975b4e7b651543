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

/** Of a list of blocks: its id is one that no segment has. */
export const listKey = (id: SegmentId): string => `${folderOf(id)}/${id}.cids`;

/** The objects of something that `SharedLog.doomed` tells: a segment, or the key of a list. */
export const objectsOf = (doomed: string): readonly string[] =>
  doomed.endsWith(".cids") ? [doomed] : [carKey(doomed), indexKey(doomed)];

const keyPattern = /^[0-9a-f]{2}\/([^/]+)\.(car|idx|cids)$/;

/** The id that an object was written under; undefined for the key of something else. */
export function idOfKey(key: string): SegmentId | undefined {
  const id = keyPattern.exec(key)?.[1];
  return id === undefined || partsOf(id) === undefined ? undefined : id;
}

const oldListPattern = /^[0-9a-f]{2}\/[0-9a-f]{64}\.cids$/;

/** Whether it is the key of a list: one with an id, or as up to version 2 of the tables, of which hosts write none any more. */
export const isListKey = (key: string): boolean =>
  oldListPattern.test(key) || (key.endsWith(".cids") && idOfKey(key) !== undefined);

/** The session that writes this object; undefined for the key of something else. */
export function sessionOfKey(key: string): number | undefined {
  const id = idOfKey(key);
  return id === undefined ? undefined : partsOf(id)?.session;
}
