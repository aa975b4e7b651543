/**
 * Counts the pages that apps have shown, and contributes to every part of modhost that shows or
 * keeps such counts.
 */
import { join } from "node:path";
import { createMetrics, defineOperation, html, json } from "modhost";
import { Counts } from "./counts.js";

export const depends = ["http"];
/** One instance counts for all virtual hosts, in one process. */
export const global = true;
export const shared = true;
export const options = /** @type {const} */ ({
  visits_save_interval: {
    type: "period",
    default: 60,
    min: 1,
    unit: "seconds",
    per_host: false,
    describe: "Time between two saves of the visits. Visits since the last save are lost when the process is killed.",
  },
});

/** @param {import("modhost").Module<typeof options>} module */
export default function load(module) {
  const folder = join(module.data_path(), "visits");
  const counts = new Counts(join(folder, "counts.json"));
  const metrics = createMetrics({
    visits_pages_total: { kind: "counter", help: "Pages that apps have shown.", labels: ["app"] },
  });

  module.hook("http-finished", ({ request, response, status, app }) => {
    const isPage = request.method === "GET" && /^text\/html\b/.test(String(response.headers.content_type));
    if (status !== 200 || !isPage || app === undefined || app === "visits") return;
    counts.add(app);
    metrics.add("visits_pages_total", 1, app);
  });
  const seconds = module.get_option_period("visits_save_interval") ?? 60;
  module.add_timer(seconds, async () => {
    await counts.save();
    return seconds;
  });
  // A reload hands the counts to the next instance.
  module.save = () => counts.text();
  module.restore = (saved) => counts.restore(String(saved));
  module.unload = () => counts.save();

  // Metrics, for Prometheus and the dashboard.
  module.provides("metrics", metrics);
  // Health, for load balancers.
  module.provides("health", { problem: () => counts.problem });
  // Backups: the counts as they are when a backup begins.
  module.provides("backup", {
    async snapshot() {
      const content = Buffer.from(counts.text());
      return {
        folders: { visits: folder },
        files: [
          {
            folder: "visits",
            path: "counts.json",
            async *read(from) {
              yield content.subarray(from);
            },
          },
        ],
        bytes: content.length,
        release() {},
      };
    },
  });
  // Operations of the Admin API, and a page of the dashboard that calls them.
  module.provides("admin", {
    operations: [
      defineOperation({
        name: "visits_list",
        method: "GET",
        path: "/visits",
        scope: "read",
        help: "Number of pages that each app has shown",
        response: { type: "array", items: { type: "object" } },
        run: () => counts.list(),
      }),
      defineOperation({
        name: "visits_reset",
        method: "POST",
        path: "/visits/reset",
        scope: "admin",
        help: "Start to count from 0 again",
        input: { app: { type: "string", describe: "Name of the app; default: all apps" } },
        response: { type: "array", items: { type: "object" } },
        async run({ input }) {
          counts.reset(input.app);
          await counts.save();
          return counts.list();
        },
      }),
    ],
    pages: { folder: new URL("pages/", import.meta.url), script: "main.js" },
  });
  // A token scope: tokens with the scope `visits:read` open /visits/counts, those with `visits`
  // open all that it protects.
  module.provides("token-scope", {
    kind: "visits",
    help: "all of the visits",
    accesses: { read: "the number of visits" },
  });
  module.provides("http", {
    route: {
      "GET /": () =>
        html`<!doctype html><title>Visits</title><p>The apps of this server have shown ${counts.total} pages.</p>`,
      "GET /counts": ({ request }) => {
        const caller = module.tokens.authorize(request, { kind: "visits", access: "read" });
        if (!("status" in caller)) return json(counts.list());
        const { status, message, headers } = caller;
        return json({ message }, { status_code: status, headers });
      },
    },
  });
  // An entry of the start page, and of what `modhost run` prints.
  module.provides("start-page", {
    name: "visits",
    help: "See how many pages were shown",
    urls: () => [`${module.http_url()}/`],
  });
}
