/** What hosts and their store hold at a moment. */
import { once } from "node:events";
import { readdir, readlink } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { SqlConnection, SqlCounts } from "#node/storage/shared/sql/connection.ts";
import { sqlSettings } from "#node/storage/shared/sql/settings.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";

/** Of a process, after a collection; in bytes, and counted. */
export interface Held {
  readonly heap: number;
  readonly external: number;
  readonly rss: number;
  /** Of `rss`, what is no part of a file: pages of LMDB are the system's, which takes them back. */
  readonly anonymous: number;
  /**
   * Of `anonymous`, what neither the pages of V8's heap are nor `external`: what native code has
   * taken, and not given back.
   */
  readonly native: number;
  readonly timers: number;
  readonly sockets: number;
}

/**
 * For the environment of a process that is looked at: what it frees goes back to the system at
 * once. Left to itself glibc keeps as much as was in use at some moment, here some 100 MB, of which
 * nobody can tell whether it is a leak. It gives back only what lies behind all that is in use, so
 * that a piece of a page or more has pages of its own here: with 64 KiB as the least for that, 14
 * MB of which nothing was in use came to stay within a minute.
 */
export const GIVING_BACK: NodeJS.ProcessEnv = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: "4096",
  MALLOC_TRIM_THRESHOLD_: "65536",
};

export type Figures = Readonly<Record<string, number>>;

/** Tables whose rows are counted, of the schema of a store. */
const TABLES = ["log", "segments", "removals", "doomed", "sessions", "locks"];
/**
 * Keys of the metadata that grow for a while, up to a number: what is to be provided, and changes
 * of the files.
 */
const BOUNDED = ["routing/queue/", "files/change/"];
const ASK_MS = 20_000;

export const socketIn = (folder: string): string => join(folder, "held");

/** Of a host that was started with `tell.ts`. */
export async function heldBy(pid: number, folder: string): Promise<Figures> {
  const socket = connect(socketIn(folder)).setEncoding("utf8");
  let text = "";
  socket.on("data", (part: string) => {
    text += part;
  });
  await once(socket, "end");
  const { heap, external, rss, anonymous, native, timers, sockets } = JSON.parse(text) as Held;
  const open = (await openBy(pid)).filter((path) => !path.includes("/shared/"));
  // Those to the objects are kept for some seconds after a rush, and hold no process: `sockets`
  // leaves them out.
  const kept = open.filter((path) => path.startsWith("socket:")).length;
  const descriptors = open.length - kept;
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
    "open sockets": kept,
    descriptors,
    "cached files": cached.length,
  };
}

/** What its descriptors are: paths, and sockets by number. */
async function openBy(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder);
  // Some are closed meanwhile.
  const paths = await Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => [])));
  return paths.flat();
}

export class StoreFigures implements AsyncDisposable {
  readonly #line: SqlConnection;
  readonly #schema: string;
  readonly #objects: ReturnType<typeof openS3>;

  constructor(settings: StoreSettings) {
    const place = sqlSettings(settings.sql);
    this.#line = new SqlConnection(place, { name: "leaks", counts: new SqlCounts() });
    this.#schema = `"${place.schema}"`;
    this.#objects = openS3(s3Settings(settings));
  }

  async all(): Promise<Figures> {
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
    return { ...(row as Figures), objects, uploads };
  }

  /**
   * As hosts do each minute, but keeping fewer commits, for a shorter time: all that is to be
   * forgotten, however much was written.
   */
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
