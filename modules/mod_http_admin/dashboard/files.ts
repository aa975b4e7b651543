/**
 * Serves the scripts and styles of the dashboard. They are compressed once, and browsers cache them
 * until they change.
 */
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { addVary, contextOf } from "../../../core/http/index.ts";
import type { HttpEvent, ResponseFields } from "../../../core/types.ts";

/** A folder whose files are served under a name of one segment. */
export interface PageFolder {
  readonly name: string;
  readonly folder: URL;
  /** Files that may be requested. Default: all scripts and styles below the folder. */
  readonly only?: readonly string[];
}

interface CachedFile {
  readonly stamp: string;
  readonly type: string;
  readonly bodies: Map<string, Promise<Buffer>>;
}

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

const coders = {
  br: (data: Buffer) => promisify(brotliCompress)(data, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (data: Buffer) => promisify(gzip)(data),
  identity: async (data: Buffer) => data,
} as const;

const YEAR = 365 * 24 * 3600;

export class PageFiles {
  readonly #folders: () => readonly PageFolder[];
  readonly #cache = new Map<string, CachedFile>();
  #version: { readonly at: number; readonly text: Promise<string> } | undefined;

  constructor(folders: () => readonly PageFolder[]) {
    this.#folders = folders;
  }

  /**
   * Returns the version, which changes with the files and is part of their addresses. The files are
   * checked at most once a second.
   */
  version(): Promise<string> {
    const now = performance.now();
    if (this.#version === undefined || now - this.#version.at > 1000) this.#version = { at: now, text: this.#look() };
    return this.#version.text;
  }

  async #look(): Promise<string> {
    const stamps = await Promise.all(
      this.#folders().map(async (folder) => {
        const files = await filesOf(folder);
        return Promise.all(files.map(async (file) => `${folder.name}/${file} ${await stampOf(pathOf(folder, file))}`));
      }),
    );
    return createHash("sha256").update(stamps.flat().join("\n")).digest("hex").slice(0, 12);
  }

  /**
   * Returns undefined when the file does not exist. `path` consists of version, folder and file.
   */
  async respond(event: HttpEvent, path: string): Promise<ResponseFields | undefined> {
    const [version = "", name = "", ...rest] = path.split("/");
    const folder = this.#folders().find((each) => each.name === name);
    const file = rest.join("/");
    if (folder === undefined || !(await filesOf(folder)).includes(file)) return undefined;
    const { type, bodies } = await this.#load(`${name}/${file}`, pathOf(folder, file));
    const coding = codingFor(event);
    const isCurrent = version === (await this.version());
    const headers = {
      content_type: type,
      x_content_type_options: "nosniff",
      cross_origin_resource_policy: "same-origin",
      cache_control: isCurrent ? `private, max-age=${YEAR}, immutable` : "no-store",
      ...(coding === "identity" ? {} : { content_encoding: coding }),
    };
    addVary(headers, "Accept-Encoding");
    let body = bodies.get(coding);
    if (body === undefined) {
      body = (bodies.get("identity") as Promise<Buffer>).then(coders[coding]);
      bodies.set(coding, body);
    }
    return { headers, body: await body };
  }

  async #load(key: string, path: string): Promise<CachedFile> {
    const stamp = await stampOf(path);
    const cached = this.#cache.get(key);
    if (cached?.stamp === stamp) return cached;
    const type = types[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream";
    const fresh = { stamp, type, bodies: new Map([["identity", readFile(path)]]) };
    this.#cache.set(key, fresh);
    return fresh;
  }
}

function codingFor(event: HttpEvent): keyof typeof coders {
  const context = contextOf(event);
  return (["br", "gzip"] as const).find((coding) => context.acceptsEncodings(coding) === coding) ?? "identity";
}

async function stampOf(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  return `${size} ${mtimeMs}`;
}

function pathOf({ folder }: PageFolder, file: string): string {
  return join(fileURLToPath(folder), ...file.split("/"));
}

/** Returns the paths below the folder. */
async function filesOf({ folder, only }: PageFolder): Promise<readonly string[]> {
  if (only !== undefined) return only;
  const root = fileURLToPath(folder);
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && (types[entry.name.split(".").at(-1) ?? ""] ?? "") !== "")
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}
