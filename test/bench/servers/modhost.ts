import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { coreOptions } from "#core/config/index.ts";
import { createHost } from "#core/index.ts";
import type { InlineModule } from "#core/inline_modules.ts";
import type { HttpEvent, Module, WebSocketEvent } from "#core/types.ts";
import type { HttpFiles } from "#modules/mod_http_files/types.ts";
import { helloApps } from "./paths.ts";
import { report } from "./report.ts";

const { METRICS, BENCH_SECURE, BENCH_CERTIFICATE = "", BENCH_FOLDER, RUN } = process.env;
const modules: readonly string[] = coreOptions.modules_enabled.default;
/** Modules that collect metrics. */
const metricsModules: readonly string[] = ["http_openmetrics", "http_admin"];

function hello(event: HttpEvent): string {
  event.response.headers.content_type = "text/plain; charset=utf-8";
  return "hello";
}

const hellos = helloApps().map(({ name, paths }) => ({
  name,
  load: (module: Module) => {
    module.depends("http");
    module.provides("http", { route: Object.fromEntries(paths.map((path) => [`GET ${path}`, hello])) });
  },
}));

const others: InlineModule[] = [
  {
    name: "json",
    load: (module) => {
      module.depends("http");
      module.provides("http", {
        route: {
          POST: async ({ request, response }) => {
            const value = await request.json();
            response.headers.content_type = "application/json; charset=utf-8";
            return JSON.stringify(value);
          },
        },
      });
    },
  },
  {
    name: "echo",
    load: (module) => {
      module.depends("http");
      module.provides("http", {
        route: {
          "WS /ws": async (event: WebSocketEvent) => {
            const socket = event.accept();
            for await (const message of socket) void socket.send(message);
          },
        },
      });
    },
  },
];

const files: InlineModule = {
  name: "static",
  load: (module) => {
    module.depends("http");
    const { serve } = module.depends<HttpFiles>("http_files");
    module.provides("http", { route: { "GET /*": serve(BENCH_FOLDER ?? "") } });
  },
};

const data = mkdtempSync(join(tmpdir(), "modhost-bench-"));
process.on("exit", () => rmSync(data, { recursive: true, force: true }));

// Loads the default modules with the request log as it is by default, and an app with one route for
// each hello route up to 150. With METRICS "off", metrics are off until they are requested. With
// RUN, there is one more app, whose module runs in this way: "trusted", "isolated" or "sandboxed".
const host = createHost({
  config: {
    data_path: data,
    admin_port: 0,
    http_ports: BENCH_SECURE === undefined ? [0] : [],
    https_ports: BENCH_SECURE === undefined ? [] : [0],
    http_interfaces: ["127.0.0.1"],
    https_interfaces: ["127.0.0.1"],
    // Longer than any round.
    http_idle_timeout: 600,
    ...(BENCH_SECURE !== undefined && {
      certificates: {
        "*": { certificate: join(BENCH_CERTIFICATE, "certificate.pem"), key: join(BENCH_CERTIFICATE, "key.pem") },
      },
    }),
    http_log: process.env.LOGGER !== "off",
    log_format: "json",
    log_level: "warn",
    ...(RUN !== undefined && { modules: { apart: { run: RUN } } }),
    ...(METRICS === "off" && { modules_enabled: modules.filter((name) => !metricsModules.includes(name)) }),
  },
  modules: [
    ...(RUN !== undefined ? [fileURLToPath(new URL("mod_apart.ts", import.meta.url))] : []),
    ...hellos,
    ...others,
    ...(BENCH_FOLDER === undefined ? [] : [files]),
  ],
});
await host.start();
report(host.listening()[0]?.port ?? 0, async (message) => {
  for (const name of metricsModules) {
    const isLoaded = host.modules().some((state) => state.name === name);
    if (message === "metrics on" && !isLoaded) await host.load(name);
    if (message === "metrics off" && isLoaded) await host.unload(name);
  }
});
