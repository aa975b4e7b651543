/**
 * Starts the program as a user would, with a node on the loopback, for tests in a browser. It can
 * be killed and started again.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "#test/support/free_port.ts";
import { launcher, nodeLauncher } from "#test/support/launchers.ts";

export const shop = (greeting: string) => `export default (module) => {
  module.provides("http", { route: {
    "GET /": () => ${JSON.stringify(greeting)},
    "GET /fail": () => { throw new Error("out of stock"); },
    "GET /items/*": (_event, name) => name,
    "GET /say/*": (_event, name) => module.log.warn("said %s\\nand more\\nand more", name),
  } });
};
`;

/** An isolated module with permissions: some are granted, one is not, and one is refused. */
const stock = `export const isolated = true;
export const depends = ["http", "http_health"];
export const permissions = { connect: ["api.example.org:443"], env: ["PATH", "HOME"], read: ["./templates", "/srv/pictures"] };
export default (module) => {
  module.provides("http", { name: "stock", route: { "GET /": () => "in stock" } });
};
`;

/** A sandboxed module. */
const locked = `export const depends = ["http"];
export default (module) => module.provides("http", { route: { "GET /": () => "locked" } });
`;

export class DashboardServer implements AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  readonly adminPort: number;
  #child: ChildProcess | undefined;

  private constructor(folder: string, port: number, adminPort: number) {
    this.folder = folder;
    this.port = port;
    this.adminPort = adminPort;
  }

  /** @throws Error if it does not start */
  static async started(): Promise<DashboardServer> {
    const server = new DashboardServer(
      await mkdtemp(join(tmpdir(), "modhost-browser-")),
      await freePort(),
      await freePort(),
    );
    const environment = { ...process.env, IPFS_PATH: server.repo };
    await promisify(execFile)(process.execPath, [nodeLauncher, "init", "--profile=test"], { env: environment });
    await server.write("mod_shop.js", shop("open"));
    await server.write("mod_stock.js", stock);
    await server.write("mod_locked.js", locked);
    await server.write("modhost.config.yaml", server.config());
    await server.start();
    return server;
  }

  get repo(): string {
    return join(this.folder, "repo");
  }

  /** The origin of the dashboard. */
  get admin(): string {
    return `http://localhost:${this.adminPort}`;
  }

  /** The origin of apps. */
  get base(): string {
    return `http://localhost:${this.port}`;
  }

  config(more = ""): string {
    return [
      `http_ports: [${this.port}]`,
      "https_ports: []",
      `admin_port: ${this.adminPort}`,
      "http_interfaces: [127.0.0.1]",
      "plugin_paths: [.]",
      "data_path: data",
      `node_repo: ${this.repo}`,
      "modules_enabled: [http, http_admin, http_admin_node, http_errors, http_guard, http_proxy, http_health, http_api, node, shop, stock, locked]",
      'modules: { stock: { grant: { env: [PATH], call: { http_health: true }, connect: ["*.example.org:443"] } }, locked: { run: sandboxed } }',
      `http_proxy: { mirror: { upstreams: ["http://127.0.0.1:${this.port}/shop"] } }`,
      "http_guard: { shop: { deny: [192.0.2.1] } }",
      more,
      "",
    ].join("\n");
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.folder, name), text);
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [launcher, "run"], { cwd: this.folder, stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    let said = "";
    child.stderr.on("data", (piece: Buffer) => {
      said = `${said}${piece}`.slice(-10_000);
    });
    while (!(await this.#isReady())) {
      if (child.exitCode !== null) throw new Error(`The server did not start:\n${said}`);
      await wait(100);
    }
  }

  /** Kills the server, as a crash would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #isReady(): Promise<boolean> {
    const response = await fetch(`${this.base}/health/ready`).catch(() => undefined);
    return response?.status === 200;
  }
}
