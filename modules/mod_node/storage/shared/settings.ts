/** Where the stores are that several hosts share, and how much of them a host keeps on its disk. */
import { NodeError } from "../../util/errors.ts";
import { placeOf, type S3Settings } from "./s3/settings.ts";
import type { SharedBlocksOptions } from "./segments/options.ts";
import { sqlSettings } from "./sql/settings.ts";

export interface SharedStoreSettings {
  /** `s3://bucket/prefix`: where the blocks are. */
  readonly s3: string;
  /** `postgres://user@host/database?schema=name`: where all else is. */
  readonly sql: string;
  /** URL of an S3-compatible store; that of Amazon for the region otherwise. */
  readonly endpoint?: string | undefined;
  /** Of the bucket; that of the environment otherwise. */
  readonly region?: string | undefined;
  /** The bucket is in the path of a URL, and no part of the host's name; so by default where an endpoint is named. */
  readonly path_style?: boolean | undefined;
  /** A file with access keys, in the form of `~/.aws/credentials`; those of the environment otherwise. */
  readonly credentials?: string | undefined;
  /** The section of that file. */
  readonly profile?: string | undefined;
  /** A file with the password of the database; in the URL, or `PGPASSWORD`, otherwise. */
  readonly sql_password?: string | undefined;
  /** Bytes of objects that are kept on the disk of this host. */
  readonly cache?: number | undefined;
  /** Folder of all that this host can lose; beside the repo's metadata otherwise. */
  readonly cache_path?: string | undefined;
  /** Bytes at which a segment is full. */
  readonly segment?: number | undefined;
  /** Seconds for which objects that nothing refers to any more can still be read. */
  readonly grace?: number | undefined;
  /** A file with the secret under which keys for names are shared; each host has its own otherwise. */
  readonly keys_secret?: string | undefined;
}

/** @throws NodeError for places that are none; passwords are not repeated */
export function requireStoreSettings(settings: SharedStoreSettings, env: NodeJS.ProcessEnv = process.env): void {
  try {
    placeOf(s3Settings(settings), env);
    sqlSettings(settings.sql);
  } catch (error) {
    throw new NodeError(`the shared store: ${(error as Error).message}`, { kind: "client", cause: error });
  }
}

export const s3Settings = ({ s3, endpoint, region, ...more }: SharedStoreSettings): S3Settings => ({
  url: s3,
  endpoint,
  region,
  pathStyle: more.path_style,
  credentials: { file: more.credentials, profile: more.profile },
});

/** How blocks are kept: in which sizes, and for how long. */
export const blockSettings = ({
  cache,
  segment,
  grace,
}: SharedStoreSettings): Pick<SharedBlocksOptions, "cacheBytes" | "segmentBytes" | "graceMs"> => ({
  cacheBytes: cache,
  segmentBytes: segment,
  graceMs: grace === undefined ? undefined : grace * 1000,
});
