/**
 * The documents of `AutoConf.URL` that were fetched, in the folder `autoconf` of the repo, where Kubo keeps and finds them: a folder for
 * each URL with the newest three, what their server said of the last, and when it was asked.
 */
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "../atomic_file.ts";
import { type AutoConfDocument, parseAutoConf } from "./document.ts";

/** A document as it came, with what its server said of it. */
export interface FetchedAutoConf {
  readonly text: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

export interface CachedAutoConf extends FetchedAutoConf {
  readonly document: AutoConfDocument;
  /** When its server was asked the last time, in milliseconds since 1970; 0 where that is not known. */
  readonly asked: number;
}

const FOLDER_MODE = 0o755;
const FILE_MODE = 0o600;
const KEPT = 3;
const DOCUMENT = /^autoconf-(\d+)\.json$/;

export class AutoConfCache {
  readonly #folder: string;

  /** @param repo its folder @param url the one that the document was fetched from */
  constructor(repo: string, url: string) {
    this.#folder = join(repo, "autoconf", fnv1a(url));
  }

  /** The newest that can be read; undefined where there is none. */
  async read(): Promise<CachedAutoConf | undefined> {
    for (const name of await this.#names()) {
      const text = await this.#text(name);
      const document = text === undefined ? undefined : parsed(text);
      if (text === undefined || document === undefined) continue;
      const [etag, lastModified, asked] = await Promise.all(
        [".etag", ".last-modified", ".last-refresh"].map((each) => this.#text(each)),
      );
      return { text, document, etag, lastModified, asked: Date.parse(asked ?? "") || 0 };
    }
    return undefined;
  }

  /** A document has come, which is another one than the newest. */
  async write({ text, etag, lastModified }: FetchedAutoConf, now = Date.now()): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: FOLDER_MODE });
    await this.#put(`autoconf-${Math.floor(now / 1000)}.json`, text);
    await this.#put(".etag", etag);
    await this.#put(".last-modified", lastModified);
    await this.asked(now);
    for (const name of (await this.#names()).slice(KEPT)) await rm(join(this.#folder, name), { force: true });
  }

  /** The server was asked, and has nothing new. */
  async asked(now = Date.now()): Promise<void> {
    await this.#put(".last-refresh", new Date(now).toISOString().replace(/\.\d+Z$/, "Z"));
  }

  /** Of the documents, the newest first. */
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

/** FNV-1a of 64 bits, as Kubo names the folder of a URL. */
function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}
