/** Opens stores that this host shares with others. */
import { randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import type { CID } from "multiformats/cid";
import { isRootKey } from "../../content/pins/root_keys.ts";
import type { MakeRoom } from "../../storage/disk_reserve.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { RepoLock } from "../../storage/repo/lock.ts";
import { lockFolders, type Repo } from "../../storage/repo/repo.ts";
import { Availability } from "../../storage/shared/availability.ts";
import { Collections } from "../../storage/shared/gc/collections.ts";
import { SharedKeys } from "../../storage/shared/keys.ts";
import type { SharedLog } from "../../storage/shared/log.ts";
import { SharedMetadata } from "../../storage/shared/metadata.ts";
import type { SharedStoreMetrics } from "../../storage/shared/metrics.ts";
import { requirePair } from "../../storage/shared/pairing.ts";
import { openS3 } from "../../storage/shared/s3/client.ts";
import type { ObjectStore } from "../../storage/shared/s3/objects.ts";
import { openSharedBlocks } from "../../storage/shared/segments/open.ts";
import type { SharedBlocks } from "../../storage/shared/segments/store.ts";
import {
  blockSettings,
  requireStoreSettings,
  type SharedStoreSettings,
  s3Settings,
} from "../../storage/shared/settings.ts";
import { openSqlLog, type SqlLog } from "../../storage/shared/sql/open.ts";
import { describeAddresses, sqlSettings } from "../../storage/shared/sql/settings.ts";
import { failure } from "../../util/errors.ts";
import { exists } from "./copy.ts";
import { type Notice, openMetadata, type Stores } from "./engines.ts";
import { unfinishedMigrations } from "./unfinished.ts";

export interface OpenSharedOptions {
  readonly onNotice?: Notice | undefined;
  /** Called when the disk of this host is too full for a write. The write is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
}

export interface SharedStores extends Stores {
  readonly blocks: SharedBlocks;
  readonly shared: SharedLog;
  readonly collections: Collections;
}

/**
 * Opens stores that several hosts share. Database and object store must be reachable at the start;
 * later they may be unavailable for a while. This host caches data of each store in a folder, which
 * may be lost.
 * @throws NodeError STORE_UNAVAILABLE; errors that say which setting is wrong
 */
export async function openSharedStores(
  repo: Pick<Repo, "stores" | "identity">,
  settings: SharedStoreSettings,
  { onNotice = () => {}, makeRoom }: OpenSharedOptions = {},
): Promise<SharedStores> {
  const availability = new Availability((problem) =>
    onNotice(problem === undefined ? "the shared store can be reached and written to again" : problem),
  );
  const engines: (() => Promise<void>)[] = [async () => availability.close()];
  const stores: (() => Promise<void>)[] = [];
  const closeAll = async (steps: readonly (() => Promise<void>)[]) => {
    for (const step of steps.toReversed()) await step().catch(() => {});
  };
  try {
    requireStoreSettings(settings);
    const bucket = openS3(s3Settings(settings));
    engines.push(() => bucket.close());
    await bucket.check();
    const objects = watchBucket(availability, bucket);
    const url = await withPassword(settings);
    const peer = repo.identity.peerId.toString();
    const database = await openSqlLog({ url, name: hostname(), peer, onTwin: twinNotice(peer, onNotice) });
    engines.push(() => database.log.close());
    await requirePair(bucket, database);
    let isFollowed = false;
    const log = watchLog(availability, database.log, () => isFollowed);
    const cachePath = settings.cache_path ?? join(dirname(repo.stores.metadata), "shared");
    const folder = join(cachePath, database.store);
    const lock = await lockCache(folder, onNotice);
    engines.unshift(() => lock.release());
    const remove = (cids: readonly CID[]) => collections.remove(cids);
    const options = { objects, log, remove, onNotice, makeRoom, ...blockSettings(settings) };
    const blocks = await openSharedBlocks({ ...options, folder: join(folder, "blocks") });
    stores.push(() => blocks.close());
    const copy = await openMetadata({ ...repo.stores, metadata: join(folder, "metadata") }, onNotice, makeRoom);
    const metadata = await SharedMetadata.open(log, copy);
    isFollowed = true;
    stores.push(() => metadata.close());
    const collections = new Collections({ log, metadata, blocks: blocks.condemnable, isRoot: isRootKey });
    engines.push(() => collections.close());
    const hostMetadata = await openMetadata(repo.stores, onNotice, makeRoom);
    stores.push(() => hostMetadata.close());
    await collections.start();
    await warnOfUnusedContent(repo, metadata, onNotice);
    const keys = await keysOf(metadata, settings);
    const addresses = { objects: bucket.name, database: describeAddresses(sqlSettings(url)) };
    const metrics = metricsOf({ addresses, availability, bucket, database, blocks, collections });
    return {
      blocks,
      metadata,
      hostMetadata,
      shared: log,
      onMetadata: (listener) => metadata.onChange(listener),
      collections,
      keys,
      problem: () => availability.problem,
      metrics,
      close: () => closeAll(engines),
    };
  } catch (error) {
    await closeAll([...engines, ...stores]);
    throw error;
  }
}

const watchBucket = (availability: Availability, bucket: ObjectStore): ObjectStore =>
  availability.watch(bucket, {
    name: "objects",
    probe: (store) => store.probe(),
    tryWriting: tryPutting,
    refused: ["putNew", "put", "read", "stream", "head", "delete", "abandonUploads"],
    writes: ["putNew", "put", "delete", "abandonUploads"],
    streams: ["stream"],
  });

/**
 * `isFollowed` returns whether all copies follow the log. Until then the probe must not read from
 * it.
 */
const watchLog = (availability: Availability, log: SharedLog, isFollowed: () => boolean): SharedLog =>
  availability.watch(log, {
    name: "database",
    probe: (shared) => (isFollowed() ? shared.refresh() : shared.sessions()),
    tryWriting: (shared) => shared.tryWriting(),
    refused: ["refresh", "commit", "withLock", "sessions", "deletableObjects", "markDeleted", "lists"],
    writes: ["commit", "withLock", "markDeleted"],
  });

/** Reports each session of another host with this host's identity once. */
function twinNotice(peer: string, onNotice: Notice): (name: string, session: number) => void {
  const reported = new Set<number>();
  return (name, session) => {
    if (reported.has(session)) return;
    reported.add(session);
    onNotice(
      `the host ${name} (session ${session}) has the same identity as this one, ${peer}: each ends the sessions of the other, which makes writes fail. ` +
        "One repo is a copy of the other: stop one of the hosts and start it without a repo, so that it creates its own",
    );
  };
}

/**
 * The object that this process writes to test for write access. It overwrites the same key each
 * time, because deleting may be forbidden.
 */
const testKey = `check/${randomUUID()}`;

async function tryPutting(objects: ObjectStore): Promise<void> {
  await objects.delete([testKey]);
  await objects.put(testKey, Buffer.from("test of write access"));
  await objects.delete([testKey]);
}

/**
 * Locks the cache folder: two hosts with the same folder would each mistake the other's files for
 * their own.
 * @throws NodeError REPO_LOCKED
 */
async function lockCache(folder: string, onNotice: Notice): Promise<RepoLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return lockFolders([folder], { onNotice });
}

interface MetricSources {
  readonly addresses: SharedStoreMetrics["addresses"];
  readonly availability: Availability;
  readonly bucket: ObjectStore;
  readonly database: SqlLog;
  readonly blocks: SharedBlocks;
  readonly collections: Collections;
}

const metricsOf =
  ({ addresses, availability, bucket, database, blocks, collections }: MetricSources) =>
  (): SharedStoreMetrics => ({
    addresses,
    problems: availability.problems,
    waiting: { bytes: blocks.waiting, calls: database.log.waiting },
    lastCollection: collections.last,
    requests: bucket.metrics,
    database: { ...database.counts, ...database.log.counts },
    cache: blocks.cached,
  });

/**
 * Opens the shared keys; undefined unless the settings name a secret for them.
 * @throws NodeError KEYS_SECRET_SHORT, KEYS_SECRET_WRONG
 */
async function keysOf(metadata: MetadataStore, settings: SharedStoreSettings): Promise<SharedKeys | undefined> {
  if (settings.keys_secret === undefined) return undefined;
  return SharedKeys.open(metadata, await secretIn(settings.keys_secret, "the secret for keys"));
}

/** Returns the text of a file without the newline at its end. */
export async function secretIn(path: string, what: string): Promise<string> {
  const text = await readFile(path, "utf8").catch((error: Error) => {
    throw failure("KEYS_SECRET_UNREADABLE", { what, reason: error.message }, error);
  });
  return text.replace(/\r?\n$/, "");
}

/** Returns the database URL with the password from the file, if the settings name one. */
export async function withPassword({ sql, sql_password }: SharedStoreSettings): Promise<string> {
  if (sql_password === undefined) return sql;
  const password = encodeURIComponent(await secretIn(sql_password, "the password of the database"));
  return sql.replace(/^(postgres(?:ql)?:\/\/)([^:@/?]*)(?::[^@/?]*)?@/, `$1$2:${password}@`);
}

/**
 * Tells the operator about content that is not in the shared store: local blocks of this repo, and
 * repos whose migration is incomplete.
 */
async function warnOfUnusedContent(
  { stores }: Pick<Repo, "stores">,
  metadata: MetadataStore,
  onNotice: Notice,
): Promise<void> {
  if (await exists(stores.blocks)) {
    onNotice(
      `the blocks in ${stores.blocks} are not used with a shared store: copy them there with modhost node migrate`,
    );
  }
  for (const folder of await unfinishedMigrations(metadata)) {
    onNotice(
      `only a part of the repo ${folder} is in the shared store: continue with modhost node migrate ${folder} shared`,
    );
  }
}
