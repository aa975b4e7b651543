/** The differences between two DAGs, for `object diff`. */
import { posix } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { dagPb } from "../../../formats/cid/codecs.ts";
import type { PbLink } from "../../../formats/dag_pb/dag_pb.ts";
import { namedLinks } from "../../../formats/ipld/links.ts";
import { failure } from "../../../util/errors.ts";
import type { ReadBlock } from "../reader.ts";

export interface Change {
  readonly kind: "added" | "removed" | "changed";
  /** Names of links, joined by slashes. */
  readonly path: string;
  readonly before: CID | undefined;
  readonly after: CID | undefined;
}

/**
 * Maximum number of differences in one list: two small graphs can differ at more paths than fit
 * into memory.
 */
const MAX_CHANGES = 100_000;

/**
 * Returns the changes in the order of the links of `before`, then links that exist only in
 * `before`, then links that exist only in `after`.
 *
 * @throws NodeError when there are too many
 */
export async function diff(before: CID, after: CID, read: ReadBlock, signal?: AbortSignal): Promise<Change[]> {
  const found = new Map<string, Promise<readonly Change[]>>();
  return [...(await pairDiff(before, after, { read, signal, found }))];
}

interface DiffOptions {
  readonly read: ReadBlock;
  readonly signal: AbortSignal | undefined;
  /** Changes of each pair of nodes, by their CIDs: a node may be linked many times. */
  readonly found: Map<string, Promise<readonly Change[]>>;
}

function pairDiff(before: CID, after: CID, options: DiffOptions): Promise<readonly Change[]> {
  const key = `${before} ${after}`;
  const known = options.found.get(key) ?? compare(before, after, options);
  options.found.set(key, known);
  return known;
}

async function compare(before: CID, after: CID, options: DiffOptions): Promise<readonly Change[]> {
  const { read, signal } = options;
  await nextTurn();
  signal?.throwIfAborted();
  const own = namedLinks(before, await read(before));
  const other = namedLinks(after, await read(after));
  const leaves = own.length === 0 && other.length === 0;
  if (leaves || before.code !== dagPb || after.code !== dagPb) {
    return before.equals(after) ? [] : [{ kind: "changed", path: "", before, after }];
  }
  const changes: Change[] = [];
  const targets = firstByName(other);
  for (const { name, cid } of own) {
    const target = targets.get(name);
    if (target === undefined || target.equals(cid)) continue;
    for (const change of await pairDiff(cid, target, options)) {
      changes.push({ ...change, path: joined(name, change.path) });
    }
    if (changes.length > MAX_CHANGES)
      throw failure("INPUT_TOO_LARGE", { reason: `these differ at more than ${MAX_CHANGES} paths` });
  }
  const names = new Set(own.map(({ name }) => name));
  for (const { name, cid } of own) {
    if (!targets.has(name)) changes.push({ kind: "removed", path: name, before: cid, after: undefined });
  }
  for (const { name, cid } of other) {
    if (!names.has(name)) changes.push({ kind: "added", path: name, before: undefined, after: cid });
  }
  return changes;
}

function firstByName(links: readonly PbLink[]): ReadonlyMap<string, CID> {
  const first = new Map<string, CID>();
  for (const { name, cid } of links) if (!first.has(name)) first.set(name, cid);
  return first;
}

/** Joins paths as Go does: cleaned, without a trailing slash. */
function joined(name: string, path: string): string {
  const whole = [name, path].filter((part) => part !== "").join("/");
  return whole === "" ? "" : posix.normalize(whole).replace(/(?<=.)\/$/, "");
}
