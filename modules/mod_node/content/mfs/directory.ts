/** A directory that is changed entry by entry: the interface of plain and sharded ones. */
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import type { BlockSink, Built, CidSettings } from "../unixfs/build.ts";

/** Called once everything that was passed to the sink is stored. */
export type OnStored = () => void;

/**
 * The entries of one directory. Only `find` reads blocks. Once it has resolved for a name, that
 * name can be set and removed synchronously.
 */
export interface Directory {
  /** Mode and time of the directory itself. */
  facts: ModeAndTime;
  find(name: string): Promise<PbLink | undefined>;
  /** Adds an entry, or replaces the one of the same name. */
  set(link: PbLink): void;
  /** Returns false if there was none. */
  remove(name: string): boolean;
  /**
   * Passes the changed blocks to the sink. Adds callbacks to `settled` that must be called once
   * they are stored.
   */
  write(settings: CidSettings, sink: BlockSink, settled: OnStored[]): Promise<Built>;
}
