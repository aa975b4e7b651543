/** Imports files and symlinks. */

import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { encodeUnixfs, type ModeAndTime, type UnixTime } from "../../formats/unixfs/format.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";
import { balanced, type LayoutSettings, trickle } from "./layout.ts";
import { type FilePart, Leaves } from "./leaves.ts";

export interface FileSettings extends LayoutSettings {
  readonly chunker: () => Chunker;
  readonly rawLeaves: boolean;
  readonly trickle: boolean;
}

/** What is known of a file beside its bytes. */
export interface FileKnown {
  /** Path or URL of a file with the same bytes: leaves say where in it they are. */
  readonly backing?: string | undefined;
  /** Not together with raw leaves. */
  readonly facts?: ModeAndTime | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Chunks, hashes and stores a file as it comes, in constant memory. The CID is the one that the
 * reference gives under the same settings.
 */
export async function importFile(
  source: AsyncIterable<Uint8Array>,
  settings: FileSettings,
  sink: BlockSink,
  { backing, facts, signal }: FileKnown = {},
): Promise<FilePart> {
  const { trickle: isTrickle } = settings;
  // In a trickle DAG even one chunk has a node above it.
  const leafFacts = isTrickle ? undefined : facts;
  const leafType = isTrickle ? "Raw" : "File";
  const leaves = new Leaves(source, { ...settings, leafType, backing, facts: leafFacts, signal }, sink);
  try {
    return await (isTrickle ? trickle : balanced)(leaves, settings, sink, facts);
  } finally {
    await leaves.close();
  }
}

/** A symlink has a time and, as its permissions are of no use, no mode. */
export function importSymlink(
  target: Uint8Array,
  settings: CidSettings,
  sink: BlockSink,
  mtime?: UnixTime,
): Promise<Built> {
  return buildNode({ data: encodeUnixfs({ type: "Symlink", data: target, mtime }), links: [] }, settings, sink);
}
