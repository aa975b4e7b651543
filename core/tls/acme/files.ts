/** Stores certificates by ACME in a folder that only the server's user can read. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { makePrivateFolder } from "../../util/private_folder.ts";
import { writeFileAtomic } from "../../util/write_file_atomic.ts";
import type { CertificateFiles } from "../pair.ts";

/** A stored certificate that was issued earlier. */
export interface StoredCertificate {
  readonly certificate: string;
  readonly validFrom: Date;
  readonly validTo: Date;
  /** URL of the directory of the authority that issued it. */
  readonly directory: string;
}

/** Failed attempts in a row to get a certificate. */
export interface FailedTries {
  readonly failures: number;
  /** Why the last attempt failed. */
  readonly error: string | undefined;
  /** When to try again, in milliseconds since 1970. */
  readonly due: number;
}

/** Returns the paths of the files for a name's certificate. */
export function filesOf(
  folder: string,
  name: string,
): CertificateFiles & { readonly about: string; readonly tries: string } {
  const path = (extension: string) => join(folder, `${name}.${extension}`);
  return { certificate: path("crt"), key: path("key"), about: path("json"), tries: path("tries") };
}

/** Returns undefined if no attempt failed with these settings, or if the file is damaged. */
export function readFailedTries(folder: string, name: string, settings: string): FailedTries | undefined {
  try {
    const read = JSON.parse(readFileSync(filesOf(folder, name).tries, "utf8"));
    const { failures, error, due } = read as FailedTries;
    const isWhole = Number.isSafeInteger(failures) && Number.isFinite(due) && typeof error === "string";
    return isWhole && read.settings === settings ? { failures, error, due } : undefined;
  } catch {
    return undefined;
  }
}

/** Saves the failures with a digest of the settings that were used. */
export async function writeFailedTries(
  folder: string,
  name: string,
  settings: string,
  { failures, error, due }: FailedTries,
): Promise<void> {
  const { tries } = filesOf(folder, name);
  if (failures === 0) return rm(tries, { force: true });
  makePrivateFolder(folder);
  await writeFileAtomic(tries, `${JSON.stringify({ settings, failures, error, due })}\n`, 0o600);
}

/** Returns the account key for an authority, and creates it if there is none. */
export async function accountKey(folder: string, directory: string): Promise<KeyObject> {
  const id = createHash("sha256").update(directory).digest("hex").slice(0, 16);
  const path = join(folder, `account-${id}.key`);
  try {
    return createPrivateKey(await readFile(path, "utf8"));
  } catch (error) {
    // A key that exists but cannot be read must not lead to another account.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  makePrivateFolder(folder);
  await writeFileAtomic(path, String(privateKey.export({ type: "pkcs8", format: "pem" })), 0o600);
  return privateKey;
}

/** Returns undefined if the certificate is missing or damaged. */
export async function readStored(folder: string, name: string): Promise<StoredCertificate | undefined> {
  const files = filesOf(folder, name);
  try {
    const [certificate, key, about] = await Promise.all(
      [files.certificate, files.key, files.about].map((path) => readFile(path, "utf8")),
    );
    const parsed = new X509Certificate(certificate as string);
    if (!parsed.checkPrivateKey(createPrivateKey(key as string)) || parsed.checkHost(name) === undefined) {
      return undefined;
    }
    const { directory } = JSON.parse(about as string) as { directory: string };
    const { validFromDate: validFrom, validToDate: validTo } = parsed;
    return { certificate: certificate as string, validFrom, validTo, directory };
  } catch {
    return undefined;
  }
}

/** @throws Error for a certificate that is not for this key and name */
export async function writeStored(
  folder: string,
  name: string,
  { certificate, key, directory }: { certificate: string; key: string; directory: string },
): Promise<void> {
  const parsed = new X509Certificate(certificate);
  if (!parsed.checkPrivateKey(createPrivateKey(key)) || parsed.checkHost(name) === undefined) {
    throw new Error("it issued a certificate for another key or name");
  }
  const files = filesOf(folder, name);
  makePrivateFolder(folder);
  await writeFileAtomic(files.key, key, 0o600);
  await writeFileAtomic(files.certificate, certificate, 0o600);
  await writeFileAtomic(files.about, `${JSON.stringify({ directory })}\n`, 0o600);
}
