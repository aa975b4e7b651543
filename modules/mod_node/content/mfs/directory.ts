/** A directory that is changed entry by entry: the interface of plain and sharded ones. */
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import type { BlockSink, Built, CidSettings } from "../unixfs/build.ts";

/** Called once, when everything that was handed to the sink is stored. */
export type OnStored = () => void;

/**
 * The entries of one directory. Only `find` reads blocks: once it has resolved for a name, that
 * name can be set and removed synchronously.
 */
export interface Directory {
  /** Of the directory itself. */
  facts: ModeAndTime;
  find(name: string): Promise<PbLink | undefined>;
  /** Puts an entry, replacing one of the same name. */
  set(link: PbLink): void;
  /** False when there was none. */
  remove(name: string): boolean;
  /** Hands the changed blocks to the sink; pushes to `settled` what to do once they are stored. */
  write(settings: CidSettings, sink: BlockSink, settled: OnStored[]): Promise<Built>;
}
