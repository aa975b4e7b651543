/**
 * A folder of web pages as a site, with features that a folder alone does not have: start
 * `modhost run ./mod_site` and open http://localhost:5280/site/
 *
 * The pages are in `www` next to this file. Routes that match better than `GET /*` take precedence
 * over it.
 */
import { join } from "node:path";
import { json, type Module, text } from "modhost";
import type { HttpFiles } from "modhost/http_files";

// Another module makes the listing of a folder: the event `directory-index` requests it.
export const depends = ["http", "http_files", "http_dir_listing"];

export const options = {
  site_dir: { type: "path", example: "./www", describe: "Folder with the pages; default: the module's own." },
  site_indexable: { type: "boolean", default: true, describe: "May search engines read the site?" },
} as const;

export default function site(module: Module<typeof options>) {
  const { serve } = module.depends<HttpFiles>("http_files");
  const folder = module.get_option_path("site_dir") ?? join(module.get_directory(), "www");
  const indexable = module.get_option_boolean("site_indexable");

  module.provides("http", {
    route: {
      // All pages. A folder without index.html gets 403 here ...
      "GET /*": serve({ path: folder }),

      // ... and is listed here, because the longer wildcard takes precedence. Clients may cache the
      // files for an hour.
      "GET /downloads/*": serve({ path: join(folder, "downloads"), directory_index: true, max_age: 3600 }),

      // An exact route takes precedence over wildcards. Returning nothing passes the request on, to
      // the file of that name.
      "GET /robots.txt": () => {
        if (indexable) return;
        return text("User-agent: *\nDisallow: /\n");
      },

      // A page without a file.
      "GET /now.json": () => {
        const state = { now: new Date().toISOString(), site: module.http_url() };
        return json(state, { headers: { cache_control: "no-store" } });
      },
    },
  });
}
