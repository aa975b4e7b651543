/**
 * Installs the package as operators do, with modules that have a given number of routes. Running
 * from source would also measure the compilation.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { coreOptions } from "#core/config/index.ts";
import { installed } from "#test/bench/node/servers.ts";
import { cpuSeconds } from "#test/bench/node/usage.ts";
import { helloApps } from "#test/bench/servers/paths.ts";
import type { Listening } from "#test/bench/servers/report.ts";
import { RpcServer } from "#test/support/rpc_server.ts";

/**
 * Measurements of a start. `began` counts from outside until the server reports that it listens.
 */
export interface StartedServer {
  readonly began: Listening;
  stop(): Promise<void>;
}

export class Package implements AsyncDisposable {
  readonly #launcher: string;
  readonly #folder: string;
  readonly #remove: () => PromiseLike<void>;

  private constructor(launcher: string, folder: string, remove: () => PromiseLike<void>) {
    this.#launcher = launcher;
    this.#folder = folder;
    this.#remove = remove;
  }

  static async install(): Promise<Package> {
    const program = await installed();
    const folder = await mkdtemp(join(tmpdir(), "modhost-bench-package-"));
    return new Package(program.launcher, folder, () => program[Symbol.asyncDispose]());
  }

  /**
   * `node`: also starts the storage node, offline, and its API. The first start writes the compile
   * cache and is not measured.
   */
  async start(routes: number, { node }: { readonly node: boolean }): Promise<StartedServer> {
    const folder = join(this.#folder, `${node}-${routes}`);
    if ((await mkdir(folder, { recursive: true })) !== undefined) {
      await this.#furnish(folder, routes);
      await (await this.#begin(folder, node)).stop();
    }
    return this.#begin(folder, node);
  }

  async #begin(folder: string, node: boolean): Promise<StartedServer> {
    const names: readonly string[] = coreOptions.modules_enabled.default;
    const enabled = node ? names : names.filter((name) => !/api|node|backup/.test(name));
    const began = performance.now();
    const server = await RpcServer.start({
      folder,
      launcher: this.#launcher,
      env: {
        MODHOST_MODULES_ENABLED: enabled.join(),
        MODHOST_PLUGIN_PATHS: join(folder, "modules"),
        MODHOST_PLUGIN_AUTOLOAD: "true",
        MODHOST_NODE_OFFLINE: "true",
        MODHOST_HTTP_LOG: "true",
      },
    });
    const milliseconds = performance.now() - began;
    const cpu = cpuSeconds(server.pid) * 1e6;
    return { began: { port: Number(new URL(server.url).port), milliseconds, cpu }, stop: () => server.stop() };
  }

  async #furnish(folder: string, routes: number): Promise<void> {
    await mkdir(join(folder, "modules"));
    for (const { name, paths } of helloApps(routes)) {
      const lines = paths.map((path) => `${JSON.stringify(`GET ${path}`)}: hello`);
      const text = `const hello = () => "hello";
export function load(module) {
  module.depends("http");
  module.provides("http", { route: { ${lines.join(", ")} } });
}
`;
      await writeFile(join(folder, "modules", `mod_${name}.mjs`), text);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#remove();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
