/** Encryption of the database connection: the parameters of libpq in the URL. */
import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { failure } from "../../../util/errors.ts";

const modes = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;
type Mode = (typeof modes)[number];

export interface SqlTls {
  readonly mode: Exclude<Mode, "disable">;
  /** Paths of PEM files. */
  readonly files: Readonly<Partial<Record<"ca" | "cert" | "key", string>>>;
}

const fileParameters = { sslrootcert: "ca", sslcert: "cert", sslkey: "key" } as const;

/**
 * Removes the parameters from a URL and returns the settings; undefined for an unencrypted
 * connection.
 * @throws NodeError
 */
export function takeTls({ searchParams }: URL): SqlTls | undefined {
  const given = searchParams.get("sslmode") ?? undefined;
  const files: Record<string, string> = {};
  for (const [parameter, name] of Object.entries(fileParameters)) {
    const path = searchParams.get(parameter);
    if (path === null) continue;
    searchParams.delete(parameter);
    // `system` names the certificate authorities of Node.js, which are the default.
    if (parameter === "sslrootcert" && path === "system") continue;
    if (!isAbsolute(path))
      throw failure("STORE_ADDRESS_INVALID", { reason: `${parameter}=${path}: the path of a file must be absolute` });
    files[name] = path;
  }
  searchParams.delete("sslmode");
  const mode = modes.find((each) => each === (given ?? "disable"));
  if (mode === undefined)
    throw failure("STORE_ADDRESS_INVALID", { reason: `sslmode=${given}: there are ${modes.join(", ")}` });
  if (mode !== "disable") return { mode, files };
  if (Object.keys(files).length === 0) return undefined;
  throw failure("STORE_ADDRESS_INVALID", {
    reason: "a certificate for the database needs sslmode=verify-full, verify-ca or require, too",
  });
}

/**
 * Returns the TLS options of the client. Reads the files for each connection, so that they can be
 * renewed.
 * @throws Error for a file that cannot be read
 */
export async function tlsOptions(tls: SqlTls | undefined, host: string): Promise<"prefer" | ConnectionOptions | false> {
  if (tls === undefined) return false;
  const { mode, files } = tls;
  if (mode === "prefer") return mode;
  const contents = await Promise.all(Object.entries(files).map(async ([name, path]) => [name, await readFile(path)]));
  // As in libpq, naming an authority implies verification.
  const verifies = mode !== "require" || files.ca !== undefined;
  return {
    // The certificate must be valid for this name or address.
    host,
    ...Object.fromEntries(contents),
    rejectUnauthorized: verifies,
    ...(mode !== "verify-full" && { checkServerIdentity: () => undefined }),
  };
}
