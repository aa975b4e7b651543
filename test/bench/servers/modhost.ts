import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { coreOptions } from "#core/config/index.ts";
import { createHost } from "#core/index.ts";
import type { InlineModule } from "#core/inline_modules.ts";
import { report } from "./report.ts";

const { FIGURES } = process.env;
const modules: readonly string[] = coreOptions.modules_enabled.default;
/** Modules that keep figures. */
const withFigures: readonly string[] = ["http_openmetrics", "http_admin"];

// The default modules, their request log on as they come, and 150 apps of one route. With FIGURES "off" there are no figures until they are asked for; with ISOLATED, one more app in a worker.
const host = createHost({
  config: {
    data_path: mkdtempSync(join(tmpdir(), "modhost-bench-")),
    http_ports: [0],
    https_ports: [],
    http_interfaces: ["127.0.0.1"],
    http_log: process.env.LOGGER !== "off",
    log_format: "json",
    ...(FIGURES === "off" && { modules_enabled: modules.filter((name) => !withFigures.includes(name)) }),
  },
  modules: [
    ...(process.env.ISOLATED === "on" ? [fileURLToPath(new URL("mod_apart.ts", import.meta.url))] : []),
    ...(Array.from({ length: 150 }, (_, index) => ({
      name: `app${index}`,
      load: (module) => {
        module.depends("http");
        module.provides("http", {
          route: {
            "GET /hello": (event) => {
              event.response.headers.content_type = "text/plain; charset=utf-8";
              return "hello";
            },
          },
        });
      },
    })) satisfies InlineModule[]),
  ],
});
await host.start();
report(host.listening()[0]?.port ?? 0, async (message) => {
  for (const name of withFigures) {
    const isLoaded = host.modules().some((state) => state.name === name);
    if (message === "figures on" && !isLoaded) await host.load(name);
    if (message === "figures off" && isLoaded) await host.unload(name);
  }
});
