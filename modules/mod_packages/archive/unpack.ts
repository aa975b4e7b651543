/** Unpacks the archive of one package, and refuses everything that is not a plain file. */
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Readable, Transform, type TransformCallback } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";
import { size_text } from "../../../core/net/http.ts";
import { PackageError } from "../errors.ts";
import type { ArchiveLimits } from "../settings.ts";

const FOLDER = 0o755;
const PROGRAM = 0o755;
const FILE = 0o644;
const OWNER_MAY_RUN = 0o100;
/**
 * Files of an archive compress well if they are small, so that the ratio matters above this size.
 */
const RATIO_FROM_BYTES = 1024 * 1024;

const CHUNK_BYTES = 128 * 1024;

/** Code of the error of streams whose source has failed. */
const ENDED = "STREAM_DESTROYED";

const fileTypes: ReadonlySet<string> = new Set(["file", "contiguous-file"]);

/** The files of all packages of a tree, which share limits and names. */
export class TreeBudget {
  files = 0;
  /** Total size of the files. */
  bytes = 0;
  /** Total size of the archives, as they were received and decompressed. */
  #received = 0;
  #decompressed = 0;
  /** Number of files and folders in the archives. */
  #entries = 0;
  readonly limits: ArchiveLimits;
  readonly #module: string;
  /**
   * Paths as written, by how a file system that ignores case sees them. The owner of a file is the
   * name of its package; a folder has none.
   */
  readonly #paths = new Map<string, { readonly path: string; readonly owner: string | undefined }>();

  constructor(limits: ArchiveLimits, module: string) {
    this.limits = limits;
    this.#module = module;
  }

  addEntry(size: number): void {
    this.#entries += 1;
    this.bytes += size;
    const { files: most } = this.limits;
    if (this.#entries > most) throw new PackageError("ARCHIVE_FILES", { package: this.#module, most });
  }

  addReceived(bytes: number): void {
    this.#received += bytes;
    this.#assertSize(this.#received);
  }

  addDecompressed(bytes: number): void {
    this.#decompressed += bytes;
    this.#assertSize(this.#decompressed);
  }

  #assertSize(bytes: number): void {
    const { bytes: most } = this.limits;
    if (bytes > most) throw new PackageError("ARCHIVE_SIZE", { package: this.#module, most: size_text(most) });
  }

  /**
   * Claims the path of a file for a package, and those of the folders above it. Returns false if
   * the package has claimed this very file before.
   */
  claim(path: string, name: string): boolean {
    const parts = path.split("/");
    for (let length = 1; length <= parts.length; length += 1) {
      const part = parts.slice(0, length).join("/");
      const key = part.normalize("NFC").toLowerCase();
      const isFile = length === parts.length;
      const other = this.#paths.get(key);
      if (other === undefined) {
        this.#paths.set(key, { path: part, owner: isFile ? name : undefined });
        continue;
      }
      const isSame = other.path === part && other.owner === (isFile ? name : undefined);
      if (!isSame) throw new PackageError("ARCHIVE_COLLISION", { package: name, path, other: other.path });
      if (isFile) return false;
    }
    this.files += 1;
    return true;
  }
}

export interface UnpackedArchive {
  /** SHA-512 of the archive, as npm writes it. */
  readonly integrity: string;
}

/**
 * Unpacks a gzipped tar archive as npm makes them: everything is in one folder, whose name does not
 * matter. Stops at the first entry that is refused; the caller removes what was written.
 * @param root folder of the module's package
 * @param path of this package's folder below it; empty for the module's own package
 */
export async function unpack(
  archive: Readable,
  { root, path, name, budget }: { root: string; path: string; name: string; budget: TreeBudget },
): Promise<UnpackedArchive> {
  const hash = createHash("sha512");
  let compressed = 0;
  let unpacked = 0;
  const { ratio: most } = budget.limits;
  const measureCompressed = observer((chunk) => {
    hash.update(chunk);
    compressed += chunk.length;
  });
  const measureUnpacked = observer((chunk) => {
    unpacked += chunk.length;
    budget.addDecompressed(chunk.length);
    if (unpacked > RATIO_FROM_BYTES && unpacked > compressed * most)
      throw new PackageError("ARCHIVE_RATIO", { package: name, most });
  });
  const entries = extract();
  const parsed = pipeline(
    archive,
    measureCompressed,
    createGunzip({ chunkSize: CHUNK_BYTES }),
    measureUnpacked,
    entries,
  );
  // The loop below fails as well, sometimes with an error that only says that a stream has ended.
  parsed.catch(() => undefined);
  try {
    for await (const entry of entries) {
      const file = checkedPath(entry.header, name);
      budget.addEntry(file === undefined ? 0 : (entry.header.size ?? 0));
      if (file === undefined) {
        entry.resume();
        continue;
      }
      const below = path === "" ? file : `${path}/${file}`;
      const target = join(root, below);
      if (!budget.claim(below, name)) {
        await assertRepeated(entry as AsyncIterable<Buffer>, target, { name, path: below });
        continue;
      }
      await mkdir(dirname(target), { recursive: true, mode: FOLDER });
      const mode = ((entry.header.mode ?? 0) & OWNER_MAY_RUN) === 0 ? FILE : PROGRAM;
      await writeFile(target, entry as AsyncIterable<Buffer>, { flag: "wx", mode, flush: true });
    }
    await parsed;
  } catch (error) {
    const { code = ENDED } = error as NodeJS.ErrnoException;
    const isCause = error instanceof PackageError || code !== ENDED;
    throw archiveError(isCause ? error : await parsed.catch((cause: unknown) => cause), name);
  }
  return { integrity: `sha512-${hash.digest("base64")}` };
}

/**
 * Some versions of npm pack a file twice if its package.json names it as `./index.js`. The second
 * entry must be equal to the first.
 */
async function assertRepeated(
  entry: AsyncIterable<Buffer>,
  file: string,
  { name, path }: { readonly name: string; readonly path: string },
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk);
  if (!Buffer.concat(chunks).equals(await readFile(file)))
    throw new PackageError("ARCHIVE_COLLISION", { package: name, path, other: path });
}

interface EntryHeader {
  readonly name: string;
  readonly type?: string | null | undefined;
}

/** Returns the path of a file in the package's folder; undefined for a folder. */
function checkedPath({ name: path, type }: EntryHeader, name: string): string | undefined {
  const refuse = (reason: string) => new PackageError("ARCHIVE_PATH", { package: name, path, reason });
  if (type === "symlink" || type === "link") throw new PackageError("ARCHIVE_LINK", { package: name, path });
  if (type !== "directory" && !fileTypes.has(type ?? "file"))
    throw new PackageError("ARCHIVE_SPECIAL", { package: name, path, type: type ?? "unknown" });
  if (/^[/\\]|^[A-Za-z]:/.test(path)) throw refuse("which is absolute");
  if (/\p{Cc}/u.test(path) || path.includes("\\")) throw refuse("which contains characters that no path may contain");
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refuse("which leads out of the package");
  if (type === "directory") return undefined;
  if (parts.length < 2) throw refuse("which is in no folder");
  return parts.slice(1).join("/");
}

function observer(observe: (chunk: Buffer) => void): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      try {
        observe(chunk);
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

/** Errors of the parsers become errors of this module; those of the network and the disk stay. */
function archiveError(error: unknown, name: string): unknown {
  if (error instanceof PackageError) return error;
  const { code = "", message } = error as NodeJS.ErrnoException;
  const isOfParser = code === "" || code.startsWith("Z_") || code === "ERR_STREAM_PREMATURE_CLOSE";
  return isOfParser ? new PackageError("ARCHIVE_INVALID", { package: name, reason: message }, { cause: error }) : error;
}
