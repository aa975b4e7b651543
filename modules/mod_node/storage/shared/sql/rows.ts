/** The rows that a commit writes in addition to its entries. */
import { encodeEntries, listIn } from "../entries.ts";
import type { Entry } from "../log.ts";

/** Returns the last change of each key, because a statement can change a row only once. */
export const lastChanges = (entries: readonly Entry[]): Map<string, Uint8Array | undefined> =>
  new Map(entries.flatMap((entry) => (entry.kind === "metadata" ? entry.changes : [])));

export const byteArray = (values: readonly (Uint8Array | undefined)[]): string =>
  `{${values.map((value) => (value ? `"\\\\x${Buffer.from(value).toString("hex")}"` : "NULL")).join(",")}}`;

/** Returns the rows of the tables that mirror the log. */
export function marksOf(entry: Entry): object[] {
  if (entry.kind === "metadata") return [];
  if (entry.kind === "segment") return [segmentMark(entry.segment)];
  if (entry.kind === "replaced") {
    return [...entry.segments.map((id) => ({ kind: "replaced", id })), ...entry.by.map(segmentMark)];
  }
  const bytes = encodeEntries([entry]).toString("base64");
  return [{ kind: entry.kind, epoch: entry.epoch, entry: bytes, list: listIn(entry) }];
}

const segmentMark = ({
  id,
  bytes,
  blocks,
  index,
}: {
  id: string;
  bytes: number;
  blocks: number;
  index?: Uint8Array | undefined;
}) => ({
  kind: "segment",
  id,
  bytes,
  blocks,
  index: index && Buffer.from(index).toString("base64"),
});
