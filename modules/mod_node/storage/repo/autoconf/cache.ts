/**
 * The cache of documents from `AutoConf.URL` in the folder `autoconf` of the repo, in the format of
 * Kubo. Each URL has a folder with the newest three documents, the HTTP validators of the last one,
 * and the time of the last request.
 */
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "../atomic_file.ts";
import { type AutoConfDocument, parseAutoConf } from "./document.ts";

/** A document and its HTTP validators. */
export interface FetchedAutoConf {
  readonly text: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

export interface CachedAutoConf extends FetchedAutoConf {
  readonly document: AutoConfDocument;
  /** Milliseconds since 1970 of the last request to the server; 0 when unknown. */
  readonly refreshedAt: number;
}

const FOLDER_MODE = 0o755;
const FILE_MODE = 0o600;
const MAX_DOCUMENTS = 3;
const DOCUMENT = /^autoconf-(\d+)\.json$/;

export class AutoConfCache {
  readonly #folder: string;

  /**
   * @param repo its folder
   * @param url the URL of the documents
   */
  constructor(repo: string, url: string) {
    this.#folder = join(repo, "autoconf", fnv1a(url));
  }

  /** Returns the newest document that can be read; undefined when there is none. */
  async read(): Promise<CachedAutoConf | undefined> {
    for (const name of await this.#names()) {
      const text = await this.#text(name);
      const document = text === undefined ? undefined : parsed(text);
      if (text === undefined || document === undefined) continue;
      const [etag, lastModified, lastRefresh] = await Promise.all(
        [".etag", ".last-modified", ".last-refresh"].map((each) => this.#text(each)),
      );
      return { text, document, etag, lastModified, refreshedAt: Date.parse(lastRefresh ?? "") || 0 };
    }
    return undefined;
  }

  /** Stores a document that differs from the newest one. */
  async write({ text, etag, lastModified }: FetchedAutoConf, now = Date.now()): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: FOLDER_MODE });
    await this.#put(`autoconf-${Math.floor(now / 1000)}.json`, text);
    await this.#put(".etag", etag);
    await this.#put(".last-modified", lastModified);
    await this.recordRefresh(now);
    for (const name of (await this.#names()).slice(MAX_DOCUMENTS)) await rm(join(this.#folder, name), { force: true });
  }

  /** Records that the server was asked and has no newer document. */
  async recordRefresh(now = Date.now()): Promise<void> {
    await this.#put(".last-refresh", new Date(now).toISOString().replace(/\.\d+Z$/, "Z"));
  }

  /** Returns the names of the documents, the newest first. */
  async #names(): Promise<readonly string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const time = (name: string) => Number(DOCUMENT.exec(name)?.[1] ?? -1);
    return names.filter((name) => time(name) >= 0).sort((a, b) => time(b) - time(a));
  }

  #text(name: string): Promise<string | undefined> {
    return readFile(join(this.#folder, name), "utf8").catch(() => undefined);
  }

  async #put(name: string, text: string | undefined): Promise<void> {
    const path = join(this.#folder, name);
    await (text === undefined ? rm(path, { force: true }) : writeAtomically(path, text, FILE_MODE));
  }
}

function parsed(text: string): AutoConfDocument | undefined {
  try {
    return parseAutoConf(text);
  } catch {
    return undefined;
  }
}

/** Computes the 64-bit FNV-1a hash, which Kubo uses to name the folder of a URL. */
function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}
