import { setImmediate as nextTurn } from "node:timers/promises";
import type { RangeOptions, Transaction } from "lmdb";
import { Gathering } from "../../util/async/gathering.ts";
import { failure } from "../../util/errors.ts";
import type { MakeRoom } from "../disk_reserve.ts";
import { EnvironmentDamaged, type Notice, openEnvironment, type Table } from "../lmdb/open.ts";
import { compareAndSet, keyBytes, OverlayTransaction, runSynchronously } from "./overlay_transaction.ts";
import type { KeyPage, KeyRange, MetadataReader, MetadataStore, MetadataWriter } from "./store.ts";

const pageSize = 256;
const noBytes = Buffer.alloc(0);

/** Transactions that are committed together: either all of them or none. */
interface CommitGroup {
  readonly overlay: OverlayTransaction;
  readonly written: PromiseWithResolvers<void>;
}

/**
 * Metadata in an LMDB environment of its own.
 *
 * A transaction runs immediately on top of the transactions that are being written. All
 * transactions that arrive during a commit form the next commit. Other reads see committed data
 * only. When a commit fails, every transaction that was built on it fails as well.
 *
 * @throws NodeError STORE_BROKEN
 */
export async function openLmdbMetadata(folder: string, onNotice?: Notice, makeRoom?: MakeRoom): Promise<MetadataStore> {
  const environment = await openEnvironment(folder, onNotice, makeRoom).catch((error: Error) => {
    throw failure("STORE_BROKEN", { path: folder, reason: reasonOf(error) }, error);
  });
  return new LmdbMetadata(folder, environment);
}

const reasonOf = (error: Error): string =>
  error instanceof EnvironmentDamaged ? `it is damaged: ${error.message}` : error.message;

class LmdbMetadata implements MetadataStore {
  readonly #folder: string;
  readonly #environment: Awaited<ReturnType<typeof openEnvironment>>;
  readonly #table: Table;
  readonly #committed: MetadataReader;
  /** The commit that is being written. */
  #currentCommit: CommitGroup | undefined;
  /** The commit after it, which is built on top of it. */
  #nextCommit: CommitGroup | undefined;
  /** Collects transactions into a group while no commit is being written. */
  readonly #gathering = new Gathering(() => {
    if (this.#currentCommit === undefined) this.#write();
  });
  /** Read transactions of listings that have not finished. */
  readonly #views = new Set<Transaction>();
  #closed = false;

  constructor(folder: string, environment: Awaited<ReturnType<typeof openEnvironment>>) {
    this.#folder = folder;
    this.#environment = environment;
    this.#table = environment.table("metadata");
    this.#committed = committedReader(this.#table);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    this.#mustBeOpen();
    return this.#committed.get(key);
  }

  async has(key: string): Promise<boolean> {
    this.#mustBeOpen();
    return this.#committed.has(key);
  }

  async *range({
    limit = Number.POSITIVE_INFINITY,
    ...bounds
  }: KeyRange = {}): AsyncGenerator<readonly [string, Uint8Array]> {
    this.#mustBeOpen();
    const transaction = this.#table.useReadTransaction();
    this.#views.add(transaction);
    try {
      let after: string | undefined = bounds.after;
      for (let left = limit; left > 0; ) {
        const query = queryOf({ ...bounds, ...(after === undefined ? {} : { after }) }, Math.min(pageSize, left));
        const page = [...this.#table.getRange({ ...query, transaction }).map(decode)];
        for (const entry of page) {
          this.#mustBeOpen();
          yield entry;
        }
        left -= page.length;
        after = page.at(-1)?.[0];
        if (page.length < pageSize) return;
        await nextTurn();
        this.#mustBeOpen();
      }
    } finally {
      if (this.#views.delete(transaction)) transaction.done();
    }
  }

  async keys({ limit, ...bounds }: KeyPage): Promise<readonly string[]> {
    this.#mustBeOpen();
    return this.#table.getKeys(queryOf(bounds, limit)).map(String).asArray;
  }

  async transaction<T>(run: (writer: MetadataWriter) => T): Promise<T> {
    this.#mustBeOpen();
    const below = this.#nextCommit?.overlay ?? new OverlayTransaction(this.#currentCommit?.overlay ?? this.#committed);
    const overlay = new OverlayTransaction(below);
    const result = runSynchronously(run, overlay);
    // The transaction may have read data that is not committed yet. So the result waits for that
    // commit, even when the transaction changed nothing.
    if (overlay.changes.size === 0 && this.#nextCommit === undefined) {
      await this.#currentCommit?.written.promise;
      return result;
    }
    below.apply(overlay);
    this.#nextCommit ??= { overlay: below, written: Promise.withResolvers() };
    const { written } = this.#nextCommit;
    if (this.#currentCommit === undefined) this.#gathering.request();
    await written.promise;
    return result;
  }

  compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined): Promise<boolean> {
    return this.transaction(compareAndSet(key, expected, value));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (let last = this.#lastCommit; last !== undefined; last = this.#lastCommit) {
      await last.written.promise.catch(() => {});
    }
    for (const view of this.#views) view.done();
    this.#views.clear();
    await this.#environment.close();
  }

  #mustBeOpen(): void {
    if (this.#closed) throw failure("STORE_CLOSED");
  }

  get #lastCommit(): CommitGroup | undefined {
    return this.#nextCommit ?? this.#currentCommit;
  }

  async #write(): Promise<void> {
    for (let group = this.#nextCommit; group !== undefined; group = this.#nextCommit) {
      this.#currentCommit = group;
      this.#nextCommit = undefined;
      const { overlay, written } = group;
      written.promise.catch(() => {});
      try {
        await this.#environment.write(() => {
          for (const [key, value] of overlay.changes) {
            if (value === undefined) this.#table.remove(keyBytes(key));
            else this.#table.put(keyBytes(key), asBuffer(value));
          }
        });
        this.#currentCommit = undefined;
        this.#rebase(overlay);
        written.resolve();
      } catch (error) {
        const full = failure("STORE_FULL", { path: this.#folder, reason: (error as Error).message }, error);
        const built = this.#nextCommit as CommitGroup | undefined;
        this.#currentCommit = undefined;
        this.#nextCommit = undefined;
        written.reject(full);
        built?.written.promise.catch(() => {});
        built?.written.reject(full);
      }
    }
  }

  /** Rebuilds the next commit on the committed state after its base was committed. */
  #rebase(written: OverlayTransaction): void {
    const gathering = this.#nextCommit;
    if (gathering?.overlay.base !== written) return;
    const overlay = new OverlayTransaction(this.#committed);
    overlay.apply(gathering.overlay);
    this.#nextCommit = { overlay, written: gathering.written };
  }
}

function committedReader(table: Table): MetadataReader {
  const reader: MetadataReader = {
    get(key) {
      const value = table.get(keyBytes(key));
      return value && toUint8Array(value);
    },
    has: (key) => reader.get(key) !== undefined,
    range: ({ limit, ...bounds } = {}) => table.getRange(queryOf(bounds, limit)).map(decode),
  };
  return reader;
}

/**
 * Translates a range into a query of LMDB. UTF-8 never contains the byte 0xff, so this byte is an
 * upper bound of every prefix. A zero byte after a key makes the next key.
 */
function queryOf({ prefix = "", after }: KeyRange, limit: number | undefined): RangeOptions {
  const first = Buffer.from(prefix);
  const next = after === undefined ? noBytes : Buffer.concat([Buffer.from(after), Buffer.alloc(1)]);
  const start = Buffer.compare(first, next) > 0 ? first : next;
  return {
    ...(start.length === 0 ? {} : { start }),
    end: Buffer.concat([first, Buffer.of(0xff)]),
    ...(limit === undefined ? {} : { limit }),
  };
}

const decode = ({ key, value }: { key: Buffer; value: Buffer }) => [key.toString(), toUint8Array(value)] as const;
const toUint8Array = ({ buffer, byteOffset, length }: Buffer): Uint8Array => new Uint8Array(buffer, byteOffset, length);
const asBuffer = ({ buffer, byteOffset, length }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, length);
