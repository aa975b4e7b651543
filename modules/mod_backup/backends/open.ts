/** Opens the backend and reads the key that an operator has configured. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Backend } from "./backend.ts";
import { FolderBackend } from "./folder.ts";

/** The options without their prefix `backup_`. */
export interface BackendSettings {
  readonly to?: string | undefined;
  readonly key_file?: string | undefined;
  readonly s3_endpoint?: string | undefined;
  readonly s3_region?: string | undefined;
  readonly s3_key_id?: string | undefined;
  readonly s3_secret?: string | undefined;
}

const scheme = "s3://";

export const isObjectStore = (to: string): boolean => to.startsWith(scheme);

/**
 * Opens the backend. A relative folder starts at `directory`. @throws Error when no destination is
 * configured or it cannot be opened
 */
export async function openBackend(settings: BackendSettings, directory: string): Promise<Backend> {
  const { to } = settings;
  if (to === undefined || to === "")
    throw new Error("Name a folder or s3://BUCKET/PREFIX for the backup, or set the option backup_to");
  if (!isObjectStore(to)) return new FolderBackend(resolve(directory, to));
  const [bucket = "", ...path] = to.slice(scheme.length).split("/");
  const prefix = path.filter((part) => part !== "").map((part) => `${part}/`);
  if (bucket === "") throw new Error(`${to} names no bucket: it is s3://BUCKET/PREFIX`);
  const { s3_region: region = "us-east-1", s3_endpoint, s3_key_id: keyId, s3_secret: secret } = settings;
  if (keyId === undefined || secret === undefined)
    throw new Error(
      "The object store needs an access key: set backup_s3_key_id and backup_s3_secret, or MODHOST_BACKUP_S3_KEY_ID and MODHOST_BACKUP_S3_SECRET",
    );
  const endpoint = new URL(s3_endpoint ?? `https://s3.${region}.amazonaws.com`);
  const { ObjectStoreBackend } = await import("./object_store.ts");
  return new ObjectStoreBackend({ bucket, prefix: prefix.join(""), endpoint, region, credentials: { keyId, secret } });
}

/**
 * Reads the secret for encryption; undefined when no key file is named. @throws Error when the file
 * is empty or cannot be read
 */
export async function readSecret({ key_file: file }: BackendSettings): Promise<Uint8Array | undefined> {
  if (file === undefined) return undefined;
  const content = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EACCES") throw error;
    throw new Error(`The key file ${file} cannot be read (EACCES): it belongs to the user that the server runs as`, {
      cause: error,
    });
  });
  const text = content.toString("latin1").replace(/\r?\n$/, "");
  if (text === "") throw new Error(`The key file ${file} is empty: \`openssl rand -base64 32 > ${file}\` creates one`);
  return Buffer.from(text, "latin1");
}
