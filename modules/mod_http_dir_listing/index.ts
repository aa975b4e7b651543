/**
 * Lists folders for the event `directory-index`: as a page for people, JSON for programs, or plain
 * text.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { addVary, preferredType } from "../../core/http/index.ts";
import type { DirectoryIndexEvent, Module } from "../../core/types.ts";
import { readFolder } from "./folder.ts";
import { formats, render } from "./formats.ts";
import { options } from "./options.ts";
import { Shared } from "./shared.ts";

export { options };
export const global = true;

/** Writing a page of this size takes as long as a small request. */
const LARGE = 64 * 1024;

/** Number of folders that are read at a time. */
const MAX_READINGS = 2;

const formatFor = preferredType("html", "json", "text");

export default function load(module: Module): void {
  const readings = new Shared(MAX_READINGS);
  const pages = new Shared();

  let lastTurn: Promise<unknown> = Promise.resolve();

  /** Large pages are sent one after the other, so that other requests are served in between. */
  function turn(): Promise<unknown> {
    lastTurn = lastTurn.then(() => nextTurn());
    return lastTurn;
  }

  /**
   * Concurrent requests for a listing share its bytes, and concurrent requests for its formats
   * share one read of the folder.
   */
  function listing(event: DirectoryIndexEvent, name: keyof typeof formats): Promise<Buffer> {
    const { path, full_path, root, hidden } = event;
    const limit = module.get_option_integer("http_dir_listing_entries") ?? options.http_dir_listing_entries.default;
    const folder = JSON.stringify([full_path, root, hidden, limit]);
    return pages.get(JSON.stringify([name, path, folder]), async () => {
      const contents = await readings.get(folder, () => readFolder({ path: full_path, root, hidden }, limit));
      return render(formats[name], { path, ...contents, parent: full_path !== root });
    });
  }

  module.hook("directory-index", async (event: DirectoryIndexEvent) => {
    const { response } = event;
    try {
      const name = formatFor(event.request.header("accept"));
      const page = await listing(event, name);
      if (page.length > LARGE) await turn();
      Object.assign(response.headers, { content_type: formats[name].type, x_content_type_options: "nosniff" });
      addVary(response.headers, "Accept");
      return page;
    } catch (error) {
      module.log.warn("Cannot list %s: %s", event.full_path, error instanceof Error ? error.message : error);
      return undefined;
    }
  });
}
