/** The DAG layouts of files, balanced and trickle. */

import { encodeUnixfs, type ModeAndTime } from "../../formats/unixfs/format.ts";
import { type BlockSink, buildNode, type CidSettings } from "./build.ts";
import type { FilePart, Leaves } from "./leaves.ts";

export interface LayoutSettings extends CidSettings {
  /** Maximum number of links of an interior node, at least 2; `MAX_LINKS` by default. */
  readonly maxLinks?: number | undefined;
}

/** Lays out leaves as a DAG. The root gets `facts`, unless it is a leaf, which has them already. */
export type Layout = (
  leaves: Leaves,
  settings: LayoutSettings,
  sink: BlockSink,
  facts?: ModeAndTime,
) => Promise<FilePart>;

/** Default maximum number of links of an interior node. */
export const MAX_LINKS = 174;
/** Number of subtrees of each depth in a trickle node. */
export const TRICKLE_REPEAT = 4;

/** Other content of an interior node. Its own bytes come before those below it. */
export interface InteriorContent extends ModeAndTime {
  readonly type: "File" | "Raw";
  readonly data?: Uint8Array | undefined;
}

/** Builds an interior node above parts of a file. */
export async function interior(
  parts: readonly FilePart[],
  settings: CidSettings,
  sink: BlockSink,
  content: InteriorContent = { type: "File" },
): Promise<FilePart> {
  const filesize = parts.reduce((sum, part) => sum + part.filesize, content.data?.length ?? 0);
  const data = encodeUnixfs({ ...content, filesize, blocksizes: parts.map((part) => part.filesize) });
  const links = parts.map(({ cid, size }) => ({ name: "", size, cid }));
  return { ...(await buildNode({ data, links }, settings, sink)), filesize };
}

/**
 * All leaves have the same depth, and nodes are filled from the left. A single leaf is the whole
 * file.
 */
export const balanced: Layout = async (leaves, settings, sink, facts) => {
  const { maxLinks = MAX_LINKS } = settings;
  const levels: FilePart[][] = [];
  async function push(level: number, part: FilePart): Promise<void> {
    levels[level] ??= [];
    const open = levels[level];
    if (open.length === maxLinks) {
      levels[level] = [part];
      await push(level + 1, await interior(open, settings, sink));
    } else {
      open.push(part);
    }
  }
  for (let leaf = await leaves.next(); leaf !== undefined; leaf = await leaves.next()) await push(0, leaf);
  for (let level = 0; level < levels.length; level += 1) {
    const open = levels[level] as FilePart[];
    const isLast = level === levels.length - 1;
    if (isLast && open.length === 1) return open[0] as FilePart;
    await push(level + 1, await interior(open, settings, sink, isLast ? { ...facts, type: "File" } : undefined));
  }
  return leaves.empty();
};

/**
 * Leaves near the root come first, then ever deeper subtrees: reading the beginning of a file needs
 * few blocks.
 */
export const trickle: Layout = (leaves, settings, sink, facts) =>
  trickleTree(leaves, settings, sink, { depthLimit: Number.POSITIVE_INFINITY, facts });

export interface TrickleShape {
  /** Limit of the depth: subtrees are less deep. */
  readonly depthLimit: number;
  readonly facts?: ModeAndTime | undefined;
}

export async function trickleTree(
  leaves: Leaves,
  settings: LayoutSettings,
  sink: BlockSink,
  { depthLimit, facts }: TrickleShape,
): Promise<FilePart> {
  const parts: FilePart[] = [];
  await fillLayer(parts, leaves, settings.maxLinks);
  for (let depth = 1; depth < depthLimit && (await leaves.more()); depth += 1) {
    for (let repeat = 0; repeat < TRICKLE_REPEAT && (await leaves.more()); repeat += 1) {
      parts.push(await trickleTree(leaves, settings, sink, { depthLimit: depth }));
    }
  }
  return interior(parts, settings, sink, { ...facts, type: "File" });
}

/** Adds leaves until a trickle node has all of its direct leaves. */
export async function fillLayer(parts: FilePart[], leaves: Leaves, maxLinks = MAX_LINKS): Promise<void> {
  while (parts.length < maxLinks) {
    const leaf = await leaves.next();
    if (leaf === undefined) break;
    parts.push(leaf);
  }
}
