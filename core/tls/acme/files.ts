/** What is kept of certificates by ACME, in a folder that only the server's user can read. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { makePrivateFolder } from "../../util/private_folder.ts";
import { writeFileAtomic } from "../../util/write_file_atomic.ts";
import type { CertificateFiles } from "../pair.ts";

/** A certificate that was issued at an earlier time. */
export interface Kept {
  readonly certificate: string;
  readonly validFrom: Date;
  readonly validTo: Date;
  /** URL of the directory of the authority that issued it. */
  readonly directory: string;
}

/** Files of a name's certificate. */
export function filesOf(folder: string, name: string): CertificateFiles & { readonly about: string } {
  const path = (extension: string) => join(folder, `${name}.${extension}`);
  return { certificate: path("crt"), key: path("key"), about: path("json") };
}

/** The key of the account with an authority: made where there is none. */
export async function accountKey(folder: string, directory: string): Promise<KeyObject> {
  const id = createHash("sha256").update(directory).digest("hex").slice(0, 16);
  const path = join(folder, `account-${id}.key`);
  try {
    return createPrivateKey(await readFile(path, "utf8"));
  } catch (error) {
    // One that is there and cannot be read is no reason to make another account.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  makePrivateFolder(folder);
  await writeFileAtomic(path, String(privateKey.export({ type: "pkcs8", format: "pem" })), 0o600);
  return privateKey;
}

/** Undefined when it is missing or damaged. */
export async function readKept(folder: string, name: string): Promise<Kept | undefined> {
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
export async function writeKept(
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
