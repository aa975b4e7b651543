/** Pins: what must stay, kept in the metadata store (storage section 8, "Pins"). */
import type { CID } from "multiformats/cid";
import type { Blocks } from "../blocks/blocks.ts";
import { CidSet } from "../cid/set.ts";
import { parseCid } from "../cid/text.ts";
import { nodeReader } from "../dag/reader.ts";
import { walk } from "../dag/walk.ts";
import { NodeError } from "../errors.ts";
import type { MetadataStore } from "../metadata/store.ts";

/** Kinds that are stored; `indirect` follows from the recursive ones. */
export type PinMode = "recursive" | "direct";

export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
  readonly offline?: boolean | undefined;
  /** Called with the number of blocks found so far. */
  readonly progress?: ((blocks: number) => void) | undefined;
}

const key = (mode: PinMode, cid: CID) => `pins/${mode}/${cid}`;
const empty = new Uint8Array();

/**
 * A pin that was answered is on the disk. Whoever pins holds the shared side of the collector's lock, so that nothing
 * goes between its blocks' arrival and the pin.
 */
export class Pins {
  readonly #blocks: Blocks;
  readonly #metadata: MetadataStore;
  readonly #guards = new Set<() => Iterable<CID>>();

  constructor(blocks: Blocks, metadata: MetadataStore) {
    this.#blocks = blocks;
    this.#metadata = metadata;
  }

  async mode(cid: CID): Promise<PinMode | undefined> {
    if (await this.#metadata.has(key("recursive", cid))) return "recursive";
    return (await this.#metadata.has(key("direct", cid))) ? "direct" : undefined;
  }

  /** Stored pins of one kind, by the text of their CIDs. */
  async *list(mode: PinMode): AsyncGenerator<CID, void, undefined> {
    const prefix = `pins/${mode}/`;
    for await (const [found] of this.#metadata.range({ prefix })) yield parseCid(found.slice(prefix.length));
  }

  /**
   * Fetches what is missing, then pins.
   *
   * @throws NodeError at a missing block, or when a recursive pin is asked to become a direct one
   */
  async add(cid: CID, mode: PinMode, options: FetchOptions = {}): Promise<void> {
    const before = await this.mode(cid);
    if (mode === "recursive") {
      if (before === "recursive") return;
      await this.#fetch(cid, options);
    } else {
      if (before === "recursive") throw new NodeError(`${cid} already pinned recursively`);
      await nodeReader(this.#blocks, options)(cid);
    }
    await this.#metadata.transaction((writer) => {
      writer.delete(key(mode === "recursive" ? "direct" : "recursive", cid));
      writer.put(key(mode, cid), empty);
    });
  }

  /** Pins recursively what is known to be here in whole, such as what was just added. Durable when it resolves. */
  async keep(cids: readonly CID[]): Promise<void> {
    await this.#metadata.transaction((writer) => {
      for (const cid of cids) {
        writer.delete(key("direct", cid));
        writer.put(key("recursive", cid), empty);
      }
    });
  }

  /**
   * Saves from collection, without any pin, what is on its way to one: what is here of the DAGs below `roots()`, asked
   * for when a collection begins. The function that is returned ends it.
   */
  guard(roots: () => Iterable<CID>): () => void {
    this.#guards.add(roots);
    return () => this.#guards.delete(roots);
  }

  /** What is guarded now. */
  *guarded(): Generator<CID, void, undefined> {
    for (const roots of this.#guards) yield* roots();
  }

  /** All blocks below are on this machine afterwards; raw leaves that are here are not read. */
  async #fetch(cid: CID, options: FetchOptions): Promise<void> {
    const { signal, progress } = options;
    const read = nodeReader(this.#blocks, options);
    let blocks = 0;
    for await (const block of walk(cid, { read, signal, skipLeaves: true })) {
      if (block.bytes === undefined && !(await this.#blocks.has(block.cid))) await read(block.cid);
      blocks += 1;
      progress?.(blocks);
    }
  }

  /** @throws NodeError when it is not pinned so */
  async remove(cid: CID, recursive: boolean): Promise<void> {
    const mode = await this.mode(cid);
    if (mode === undefined) throw new NodeError("not pinned or pinned indirectly");
    if (mode === "recursive" && !recursive) throw new NodeError(`${cid} is pinned recursively`);
    await this.#metadata.transaction((writer) => writer.delete(key(mode, cid)));
  }

  /** Makes `to` a recursive pin in place of `from`; only what they do not share is fetched. */
  async update(from: CID, to: CID, unpin: boolean, options: FetchOptions = {}): Promise<void> {
    if ((await this.mode(from)) !== "recursive") {
      throw new NodeError("'from' cid was not recursively pinned already");
    }
    if (from.equals(to)) return;
    if ((await this.mode(to)) === "recursive") throw new NodeError("'to' cid was already recursively pinned");
    await this.#fetch(to, options);
    await this.#metadata.transaction((writer) => {
      writer.delete(key("direct", to));
      writer.put(key("recursive", to), empty);
      if (unpin) writer.delete(key("recursive", from));
    });
  }

  /** CIDs below recursive pins, each once, except those of `unwanted`. Reads local blocks only. */
  async *indirect(unwanted: CidSet, signal?: AbortSignal): AsyncGenerator<CID, void, undefined> {
    const read = nodeReader(this.#blocks, { offline: true, signal });
    const seen = new CidSet();
    for await (const root of this.list("recursive")) {
      for await (const { cid } of walk(root, { read, seen, signal, skipLeaves: true, lenient: true })) {
        if (!unwanted.has(cid)) yield cid;
      }
    }
  }

  /** The first recursive pin that each of these lies below, by the text of the CID. */
  async through(cids: readonly CID[], signal?: AbortSignal): Promise<ReadonlyMap<string, CID>> {
    const found = new Map<string, CID>();
    const asked = new Set(cids.map(String));
    const wanted = new Set(asked);
    const read = nodeReader(this.#blocks, { offline: true, signal });
    const shared = new CidSet();
    for await (const root of this.list("recursive")) {
      if (wanted.size === 0) return found;
      // One that is asked for must still be met below others when its own walk is over.
      const seen = asked.has(root.toString()) ? new CidSet() : shared;
      for await (const { cid } of walk(root, { read, seen, signal, skipLeaves: true, lenient: true })) {
        if (!cid.equals(root) && wanted.delete(cid.toString())) found.set(cid.toString(), root);
        if (wanted.size === 0) return found;
      }
    }
    return found;
  }
}
