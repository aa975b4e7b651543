/**
 * The adder: imports entries, stores their blocks in batches and pins the roots.
 *
 * The adder emits an event for every entry. When it emits the event of a root (a top-level entry,
 * or the wrapper around all of them), the root and everything below it are durable, and pinned if
 * requested. Events of files inside a directory are emitted as the files are built and promise
 * nothing. While a root waits for the disk, the adder accepts further entries. All roots that are
 * complete by then share the next flush and the next transaction of pins.
 */
import { tmpdir } from "node:os";
import type { CID } from "multiformats/cid";
import { requireAllowed } from "../../formats/cid/hashes.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { PreemptibleBatch } from "../../storage/blockstore/preemptible_batch.ts";
import type { SharedLock } from "../../util/async/shared_lock.ts";
import type { Pins } from "../pins/pins.ts";
import { type AddEntry, type AddEvent, type AddSettings, addTree } from "../unixfs/add.ts";
import type { BlockSink } from "../unixfs/build.ts";
import { DirectoryTree } from "../unixfs/directory_tree.ts";

/** The parts of a node that the adder uses. */
export interface AdderDeps {
  readonly blocks: BlockService;
  /**
   * A block service that stores the bytes of every block, even when the filestore has a reference
   * to it.
   */
  readonly wholeBlocks: BlockService;
  readonly pins: Pins;
  readonly lock: SharedLock;
  /** Folder for temporary files, when an add has too many entries for the memory. */
  readonly scratch: string;
  sync(): Promise<void>;
  /** Called with roots that are complete on this machine. Announces them to the network. */
  announce?(roots: readonly CID[]): void;
}

export interface AdderOptions {
  /** Pin every root recursively. */
  readonly pin: boolean;
  /** Name of the pins. */
  readonly pinName?: string | undefined;
  /**
   * Allow references of the filestore in place of blocks: existing references, and new ones for
   * entries with a `backing`. Default false.
   */
  readonly references?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly offline?: boolean | undefined;
  /** Do not announce the roots. `offline` implies it. */
  readonly mute?: boolean | undefined;
}

/**
 * Maximum number of events that wait for the disk or the reader. Beyond it the adder accepts no
 * more entries.
 */
const MAX_EVENTS = 1024;

/** Imports without storing anything. The events still have the CIDs. */
export function hashOnly(
  entries: AsyncIterable<AddEntry>,
  settings: AddSettings,
  { scratch = tmpdir(), signal }: { readonly scratch?: string; readonly signal?: AbortSignal | undefined } = {},
): AsyncIterable<AddEvent> {
  const sink: BlockSink = ({ cid }) => {
    requireAllowed(cid.multihash);
    return undefined;
  };
  return addTree(entries, settings, sink, new DirectoryTree(settings.sharded, scratch), signal);
}

/**
 * Imports, stores and pins, ahead of the reader up to a limit. Garbage collection may run in
 * between, and spares what was built so far. If the reader stops early, nothing waits for further
 * entries or bytes.
 *
 * @throws what the import throws, or the signal's reason, after the events before it; failures of
 * the stores
 */
export function addEntries(
  deps: AdderDeps,
  entries: AsyncIterable<AddEntry>,
  settings: AddSettings,
  options: AdderOptions,
): AsyncGenerator<AddEvent, void, undefined> {
  return new AddSession(deps, settings, options).events(entries);
}

class AddSession {
  readonly #deps: AdderDeps;
  readonly #settings: AddSettings;
  readonly #options: AdderOptions;
  readonly #batch: PreemptibleBatch;
  /** Entries that were built and are not part of a root yet. */
  readonly #tree: DirectoryTree;
  /** Events that were not yielded yet, in order. */
  readonly #events: AddEvent[] = [];
  /** Number of these events that may be yielded. */
  #released = 0;
  #over = false;
  /**
   * Stops waiting for the source. Aborted when the reader leaves, and by `signal` of the options.
   */
  readonly #abort = new AbortController();
  #isLeft = false;
  #failure: { readonly reason: unknown } | undefined;
  #pumping: Promise<void> = Promise.resolve();
  #committing: Promise<void> | undefined;
  #unguard: () => void = () => {};
  readonly #changed = new Signal();

  constructor(deps: AdderDeps, settings: AddSettings, options: AdderOptions) {
    this.#deps = deps;
    this.#settings = settings;
    this.#options = options;
    this.#tree = new DirectoryTree(settings.sharded, deps.scratch);
    const { references, offline, signal } = options;
    this.#batch = new PreemptibleBatch(references ? deps.blocks : deps.wholeBlocks, deps.lock, { signal, offline });
  }

  async #enter(): Promise<void> {
    await this.#batch.enter();
    this.#unguard = this.#deps.pins.guard(() => this.#guarded());
    const { signal } = this.#options;
    signal?.addEventListener("abort", this.#stop, { once: true });
    if (signal?.aborted) this.#stop();
  }

  readonly #stop = () => this.#abort.abort(this.#options.signal?.reason);

  async #leave(): Promise<void> {
    this.#isLeft = true;
    this.#options.signal?.removeEventListener("abort", this.#stop);
    if (!this.#over) this.#abort.abort();
    this.#changed.notify();
    try {
      await this.#pumping;
      await this.#committing;
    } finally {
      this.#unguard();
      this.#batch.leave();
    }
  }

  async *events(entries: AsyncIterable<AddEntry>): AsyncGenerator<AddEvent, void, undefined> {
    await this.#enter();
    try {
      this.#pumping = this.#pump(entries);
      while (this.#released > 0 || !this.#isDone) {
        if (this.#released === 0) {
          await this.#changed.next();
          continue;
        }
        this.#released -= 1;
        const event = this.#events.shift() as AddEvent;
        if (this.#events.length === MAX_EVENTS - 1) this.#changed.notify();
        yield event;
      }
      if (this.#failure !== undefined) throw this.#failure.reason;
    } finally {
      await this.#leave();
    }
  }

  /** Whether no further events will be released. */
  get #isDone(): boolean {
    return (this.#over || this.#failure !== undefined) && this.#committing === undefined;
  }

  /** Reads the entries. Never rejects. */
  async #pump(entries: AsyncIterable<AddEntry>): Promise<void> {
    const { signal } = this.#options;
    try {
      for await (const event of addTree(entries, this.#settings, this.#batch.add, this.#tree, this.#abort.signal)) {
        signal?.throwIfAborted();
        this.#queue(event);
        while (this.#events.length >= MAX_EVENTS && !this.#isLeft) await this.#changed.next();
        if (this.#isLeft || this.#failure !== undefined) break;
      }
    } catch (reason) {
      this.#failure ??= { reason };
    }
    this.#over = true;
    this.#changed.notify();
  }

  #queue(event: AddEvent): void {
    this.#events.push(event);
    if (event.built !== undefined) this.#batch.forget(event.built.cid);
    if (event.root === true) this.#committing ??= this.#commit();
    else if (this.#committing === undefined) this.#released = this.#events.length;
    this.#changed.notify();
  }

  /** Makes roots durable until none is waiting. Never rejects. */
  async #commit(): Promise<void> {
    try {
      while (this.#events.slice(this.#released).some(({ root }) => root)) {
        const events = this.#events.slice(this.#released);
        const roots = events.flatMap((event) => (event.root === true && event.built ? [event.built.cid] : []));
        await this.#batch.flushThen(async () => {
          await this.#deps.sync();
          if (this.#options.pin) await this.#deps.pins.keep(roots, this.#options.pinName);
        });
        if (this.#options.offline !== true && this.#options.mute !== true) this.#deps.announce?.(roots);
        this.#released += events.length;
        this.#changed.notify();
      }
      this.#released = this.#events.length;
    } catch (reason) {
      this.#failure ??= { reason };
      this.#events.length = this.#released;
    }
    this.#committing = undefined;
    this.#changed.notify();
  }

  /**
   * Returns the CIDs that a collection must spare: roots that are not durable yet, and blocks that
   * are not part of a root yet. Nothing is added during a collection. Blocks that move into or out
   * of the tree meanwhile lie below blocks that were protected when it began.
   */
  *#guarded(): Generator<CID, void, undefined> {
    const roots = this.#events.flatMap(({ root, built }) => (root === true && built ? [built.cid] : []));
    yield* [...this.#batch.unlinked(), ...roots];
    yield* this.#tree.cids();
  }
}

/** Notifies everyone who waits for a change. */
class Signal {
  #waiting: PromiseWithResolvers<void> | undefined;

  next(): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>();
    return this.#waiting.promise;
  }

  notify(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
