/** Settings of the stores that several hosts share, and of the disk cache of a host. */
import { failure } from "../../util/errors.ts";
import { type S3Settings, s3AddressOf } from "./s3/settings.ts";
import type { SharedBlocksOptions } from "./segments/options.ts";
import { sqlSettings } from "./sql/settings.ts";

export interface SharedStoreSettings {
  /** `s3://bucket/prefix`: the address of the blocks. */
  readonly s3: string;
  /** `postgres://user@host/database?schema=name`: the address of all other data. */
  readonly sql: string;
  /** URL of an S3-compatible store; by default the endpoint of Amazon for the region. */
  readonly endpoint?: string | undefined;
  /** Region of the bucket; by default the region in the environment. */
  readonly region?: string | undefined;
  /**
   * Whether URLs have the bucket in the path instead of the host name. By default true when an
   * endpoint is named.
   */
  readonly path_style?: boolean | undefined;
  /**
   * A file with access keys in the format of `~/.aws/credentials`; by default, the keys come from
   * the environment.
   */
  readonly credentials?: string | undefined;
  /** The section of that file. */
  readonly profile?: string | undefined;
  /**
   * A file with the password of the database. By default, the password is in the URL or in
   * `PGPASSWORD`.
   */
  readonly sql_password?: string | undefined;
  /** Bytes of objects in the cache on the disk of this host. */
  readonly cache?: number | undefined;
  /** Folder of all data that this host can lose; by default next to the metadata of the repo. */
  readonly cache_path?: string | undefined;
  /** Bytes at which a segment is full. */
  readonly segment?: number | undefined;
  /** Seconds for which unreferenced objects can still be read. */
  readonly grace?: number | undefined;
  /**
   * A file with the secret that encrypts shared keys for names; by default, each host has its own
   * keys.
   */
  readonly keys_secret?: string | undefined;
}

/**
 * Checks the addresses in the settings.
 * @throws NodeError for invalid addresses; it never contains passwords
 */
export function requireStoreSettings(settings: SharedStoreSettings, env: NodeJS.ProcessEnv = process.env): void {
  try {
    s3AddressOf(s3Settings(settings), env);
    sqlSettings(settings.sql);
  } catch (error) {
    throw failure("STORE_SETTINGS_INVALID", { reason: (error as Error).message }, error);
  }
}

export const s3Settings = ({ s3, endpoint, region, ...more }: SharedStoreSettings): S3Settings => ({
  url: s3,
  endpoint,
  region,
  pathStyle: more.path_style,
  credentials: { file: more.credentials, profile: more.profile },
});

/** Returns the options of the block store: sizes and durations. */
export const blockSettings = ({
  cache,
  segment,
  grace,
}: SharedStoreSettings): Pick<SharedBlocksOptions, "cacheBytes" | "segmentBytes" | "graceMs"> => ({
  cacheBytes: cache,
  segmentBytes: segment,
  graceMs: grace === undefined ? undefined : grace * 1000,
});
