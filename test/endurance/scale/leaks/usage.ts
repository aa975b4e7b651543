/** Measures the resources of hosts and their store at a moment. */
import { once } from "node:events";
import { readdir, readlink } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";

/** Resources of a process after a collection, in bytes and counts. */
export interface ProcessUsage {
  readonly heap: number;
  readonly external: number;
  readonly rss: number;
  /**
   * The part of `rss` that is not backed by files: pages of LMDB belong to the system, which
   * reclaims them.
   */
  readonly anonymous: number;
  /**
   * The part of `anonymous` that is neither the pages of V8's heap nor `external`: memory of native
   * code.
   */
  readonly native: number;
  readonly timers: number;
  readonly sockets: number;
}

/**
 * Environment of a measured process, so that it returns freed memory to the system at once. By
 * default, glibc retains as much as was in use at some moment, here about 100 MB, which cannot be
 * distinguished from a leak. It only returns memory after the last used piece, so each piece of at
 * least a page gets pages of its own here. With a threshold of 64 KiB, 14 MB of unused memory
 * remained after a minute.
 */
export const GIVING_BACK: NodeJS.ProcessEnv = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: "4096",
  MALLOC_TRIM_THRESHOLD_: "65536",
};

export type Usage = Readonly<Record<string, number>>;

/** Tables of a store's schema whose rows are counted. */
const TABLES = ["log", "segments", "removals", "doomed", "sessions", "locks"];
/**
 * Metadata keys whose number grows for a while, up to a limit: the queue of announcements, and
 * changes of files.
 */
const BOUNDED = ["routing/queue/", "files/change/"];
const ASK_MS = 20_000;

export const socketIn = (folder: string): string => join(folder, "held");

/** Resolves to the usage of a host that was started with `report_usage.ts`. */
export async function usageOf(pid: number, folder: string): Promise<Usage> {
  const socket = connect(socketIn(folder)).setEncoding("utf8");
  let text = "";
  socket.on("data", (part: string) => {
    text += part;
  });
  await once(socket, "end");
  const { heap, external, rss, anonymous, native, timers, sockets } = JSON.parse(text) as ProcessUsage;
  const open = (await openBy(pid)).filter((path) => !path.includes("/shared/"));
  // Connections to the object store stay open for some seconds after a burst without keeping the
  // process alive: `sockets` does not count them.
  const openSockets = open.filter((path) => path.startsWith("socket:")).length;
  const descriptors = open.length - openSockets;
  const shared = join(folder, "repo", "shared");
  const cached = (await readdir(shared, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  return {
    heap,
    external,
    rss,
    anonymous,
    native,
    timers,
    sockets,
    "open sockets": openSockets,
    descriptors,
    "cached files": cached.length,
  };
}

/** Resolves to the targets of a process' descriptors: paths, and sockets by number. */
async function openBy(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder);
  // A descriptor may be closed meanwhile.
  const paths = await Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => [])));
  return paths.flat();
}

export class StoreUsage implements AsyncDisposable {
  readonly #line: SqlConnection;
  readonly #schema: string;
  readonly #objects: ReturnType<typeof openS3>;

  constructor(settings: StoreSettings) {
    const database = sqlSettings(settings.sql);
    this.#line = new SqlConnection(database, { name: "leaks", counts: new SqlCounts() });
    this.#schema = `"${database.schema}"`;
    this.#objects = openS3(s3Settings(settings));
  }

  async all(): Promise<Usage> {
    const counts = TABLES.map(
      (table) => `(select count(*)::integer from ${this.#schema}.${table}) as "rows of ${table}"`,
    );
    const connections = `(select count(*)::integer from pg_stat_activity
      where application_name like 'modhost %' and application_name <> 'modhost leaks') as connections`;
    const others = BOUNDED.map((prefix) => `and not starts_with(encode(key, 'escape'), '${prefix}')`);
    const metadata = `(select count(*)::integer from ${this.#schema}.metadata where true ${others.join(" ")}) as metadata`;
    const [row] = await this.#ask(`select ${[connections, metadata, ...counts].join(", ")}`);
    const objects = (await Array.fromAsync(this.#objects.list(""))).flat().length;
    let uploads = 0;
    const isCounted = () => {
      uploads += 1;
      return false;
    };
    await this.#objects.abandonUploads(isCounted);
    return { ...(row as Usage), objects, uploads };
  }

  /** Trims the log as hosts do each minute, but retains fewer commits for a shorter time. */
  async trim(commits: number, seconds: number): Promise<void> {
    const once = `select ${this.#schema}.trim_log(${commits}, interval '${seconds} seconds')::integer as gone`;
    for (let gone = 1; gone > 0; ) [{ gone }] = (await this.#ask(once)) as unknown as [{ gone: number }];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#line.close();
    await this.#objects.close();
  }

  #ask(query: string) {
    return this.#line.run((sql) => sql.unsafe(query), ASK_MS);
  }
}
