/** Lists folders for `mod_http_files`: a page for people, JSON for programs, plain text. Answers `directory-index`. */

import { readdir, realpath, stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { basename, dirname, join, sep } from "node:path";
import type { Context } from "koa";
import { addVary, contextOf, preferredType } from "../../core/http/index.ts";
import type { DirectoryIndexEvent, Module } from "../../core/types.ts";
import { type Entry, htmlListing, jsonListing, type Listing, textListing } from "./formats.ts";

export const global = true;

const require = createRequire(import.meta.url);
/** Loaded with the first listing: it and what it needs take a tenth of a start. */
const library = (): typeof import("serve-index") => require("serve-index");

const formats = {
  html: { type: "text/html; charset=utf-8", render: htmlListing },
  json: { type: "application/json; charset=utf-8", render: jsonListing },
  text: { type: "text/plain; charset=utf-8", render: textListing },
} as const;
const formatFor = preferredType("html", "json", "text");

export default function load(module: Module): void {
  module.hook("directory-index", async (event: DirectoryIndexEvent) => {
    const { response } = event;
    try {
      const format = formats[formatFor(event.request.headers.accept)];
      const page = await listing(event, format.render);
      response.headers.content_type = format.type;
      addVary(response.headers, "Accept");
      return page;
    } catch (error) {
      module.log.warn("Cannot list %s: %s", event.full_path, error instanceof Error ? error.message : error);
      return undefined;
    }
  });
}

/**
 * Lets serve-index answer on the request's own context: it reads and sorts the folder, has it written by `render`, and
 * sends the page, which is given here. It is asked for its page form, whatever form that is in the end.
 */
async function listing(event: DirectoryIndexEvent, render: (listing: Listing) => string): Promise<string | Buffer> {
  const { path, full_path, root, hidden } = event;
  const shown = await namesToShow(full_path, root, hidden);
  const list = library()(dirname(full_path), {
    hidden: true,
    filter: (name) => shown.has(name),
    template: ({ fileList }, done) => {
      const entries = fileList.flatMap(({ name, stat }): Entry[] =>
        name === ".." || stat === null
          ? []
          : [{ name, size: stat.isDirectory() ? undefined : stat.size, modified: stat.mtime }],
      );
      done(null, render({ path, entries, parent: full_path !== root }));
    },
  });
  const context = contextOf(event);
  return new Promise((resolve, reject) => {
    const request = requestFor(context, `/${encodeURIComponent(basename(full_path))}`);
    const next = (error?: unknown) => reject(error ?? new Error("It is no folder any more"));
    list(request, responseOf(context, resolve) as Parameters<typeof list>[1], next);
  });
}

/** The request as serve-index shall see it: a GET of the folder, by a client that takes pages. */
function requestFor({ req }: Context, url: string): Parameters<ReturnType<typeof import("serve-index")>>[0] {
  const values = { url, originalUrl: url, method: "GET", headers: { accept: "text/html" } };
  const own = Object.entries(values).map(([name, value]) => [name, { value }]);
  return Object.create(req, Object.fromEntries(own));
}

/** The response of the context, but that the page comes here: middleware and the host shall see it before it is sent. */
function responseOf(context: Context, sent: (page: string | Buffer) => void): ServerResponse {
  const setHeader = (name: string, value: string) => context.set(name, value);
  return Object.create(context.res, { setHeader: { value: setHeader }, end: { value: sent } });
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
