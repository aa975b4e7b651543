/** Directories that are changed entry by entry: what both kinds have in common. */
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BlockSink, Built, CidSettings } from "../unixfs/build.ts";

/** Called once when all that was handed to the sink is stored. */
export type OnStored = () => void;

/**
 * The entries of one directory. Blocks are read by `find` alone: once it has resolved for a name, that name can be
 * set and removed at once.
 */
export interface Directory {
  find(name: string): Promise<PbLink | undefined>;
  /** Puts an entry in, in place of one of that name. */
  set(link: PbLink): void;
  /** False when there was none. */
  remove(name: string): boolean;
  /** Hands on the blocks that have changed; `settled` is told what to do when they are stored. */
  write(settings: CidSettings, sink: BlockSink, settled: OnStored[]): Promise<Built>;
}
