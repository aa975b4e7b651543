/** Lists folders for `mod_http_files`: a page for people, JSON for programs, plain text. Answers `directory-index`. */
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import serveIndex from "serve-index";
import { addVary, detachedContext, preferredType } from "../../core/http/index.ts";
import type { DirectoryIndexEvent, Module } from "../../core/types.ts";
import { type Entry, htmlListing, jsonListing, type Listing, textListing } from "./formats.ts";

export const global = true;

const formats = {
  html: { type: "text/html; charset=utf-8", render: htmlListing },
  json: { type: "application/json; charset=utf-8", render: jsonListing },
  text: { type: "text/plain; charset=utf-8", render: textListing },
} as const;

export default function load(module: Module): void {
  module.hook("directory-index", async (event: DirectoryIndexEvent) => {
    const { response } = event;
    try {
      const listing = await readListing(event);
      const format = formats[preferredType(event.request.headers.accept, ["html", "json", "text"])];
      response.headers.content_type = format.type;
      addVary(response.headers, "Accept");
      return format.render(listing);
    } catch (error) {
      module.log.warn("Cannot list %s: %s", event.full_path, error instanceof Error ? error.message : error);
      return undefined;
    }
  });
}

/**
 * Lets serve-index read the folder. It is run against a request of its own and a response that goes nowhere; its
 * template function gets the sorted entries.
 */
async function readListing({ path, full_path, root, hidden }: DirectoryIndexEvent): Promise<Listing> {
  const shown = await namesToShow(full_path, root, hidden);
  return new Promise((resolve, reject) => {
    const list = serveIndex(dirname(full_path), {
      hidden: true,
      filter: (name) => shown.has(name),
      template: ({ fileList }) => {
        const entries = fileList.flatMap(({ name, stat }): Entry[] =>
          name === ".." || stat === null
            ? []
            : [{ name, size: stat.isDirectory() ? undefined : stat.size, modified: stat.mtime }],
        );
        resolve({ path, entries, parent: full_path !== root });
      },
    });
    const { req, res } = detachedContext({ url: `/${encodeURIComponent(basename(full_path))}`, accept: "text/html" });
    const next = (error?: unknown) => reject(error ?? new Error("It is no folder any more"));
    list(req as Parameters<typeof list>[0], res as Parameters<typeof list>[1], next);
  });
}

/** Files and folders whose names may be shown; links only where they lead to something that is served, too. */
async function namesToShow(folder: string, root: string, hidden: boolean): Promise<Set<string>> {
  const names = new Set<string>();
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith(".") && !hidden) continue;
    const plain = entry.isFile() || entry.isDirectory();
    if (plain || (entry.isSymbolicLink() && (await leadsInside(join(folder, entry.name), root)))) names.add(entry.name);
  }
  return names;
}

async function leadsInside(link: string, root: string): Promise<boolean> {
  try {
    const target = await realpath(link);
    if (target !== root && !target.startsWith(root.endsWith(sep) ? root : root + sep)) return false;
    const stats = await stat(target);
    return stats.isFile() || stats.isDirectory();
  } catch {
    return false;
  }
}
