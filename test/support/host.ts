/**
 * Hosts for tests: they listen on ephemeral ports of the loopback, use a temporary folder and
 * collect their log as text.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { createHost, type Host } from "#core/index.ts";
import type { HttpProvider, MiddlewareProvider, ModuleFunction } from "#core/types.ts";
import { outsideOptions, registerInWorker, type SetupSource, setupSource, writeModules } from "./isolated_modules.ts";
import { Client, type Ports } from "./transports.ts";

type FromFolder<T> = T | ((folder: string) => T);

export interface HostSetup {
  /** Writes files that modules or options need, before the host starts. */
  readonly prepare?: (folder: string) => Promise<void>;
  /** Options that override the defaults of tests. Undefined removes one. */
  readonly config?: FromFolder<Record<string, unknown>>;
  /** Modules of the test by the name that their file would have. */
  readonly modules?: FromFolder<Record<string, ModuleFunction>>;
  /** Names of apps that the operator places, without which a sandboxed module may not use them. */
  readonly placed?: readonly string[];
  /** Names of `modules` that need the main thread even if the others are isolated. */
  readonly inMain?: readonly string[];
  /** JavaScript sources by module name, found through `plugin_paths`. */
  readonly plugins?: Readonly<Record<string, string>>;
  /** False: load everything, but open no port. */
  readonly listen?: boolean;
}

export interface TestHost extends Ports, AsyncDisposable {
  readonly host: Host;
  /** Contains `data`, `plugins` and what `prepare` wrote. `stop` removes it. */
  readonly folder: string;
  /** Returns everything logged so far. */
  log(): string;
  client(name: Client["name"]): Client;
  stop(): Promise<void>;
}

/**
 * The folder with the certificate that the first host made. Later hosts use it, because making one
 * takes half of a start.
 */
let madeCertificate: string | undefined;

const resolved = <T>(value: FromFolder<T> | undefined, folder: string): T | undefined =>
  typeof value === "function" ? (value as (folder: string) => T)(folder) : value;

/**
 * Starts a host. With `isolated`, its modules run in workers, which load them from there. The
 * caller stops the host (`await using`, or `stop`).
 */
export async function startHost(setup: HostSetup, isolated?: SetupSource): Promise<TestHost> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  try {
    await setup.prepare?.(folder);
    for (const [name, source] of Object.entries(setup.plugins ?? {})) {
      await mkdir(join(folder, "plugins"), { recursive: true });
      await writeFile(join(folder, "plugins", `${name}.js`), source);
    }
    return await start(setup, folder, isolated);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function start(setup: HostSetup, folder: string, isolated: SetupSource | undefined): Promise<TestHost> {
  const config: Record<string, unknown> = {
    http_ports: [0],
    https_ports: [0],
    admin_port: 0,
    http_interfaces: ["127.0.0.1"],
    https_interfaces: ["127.0.0.1"],
    data_path: join(folder, "data"),
    http_log: false,
    // The node, the dashboard and the other default modules would make a start take twenty times as
    // much CPU time.
    modules_enabled: ["http", "http_errors"],
    // A busy machine takes long: only tests of this option use a shorter timeout.
    load_timeout: 300,
    ...(setup.plugins === undefined ? {} : { plugin_paths: [join(folder, "plugins")] }),
    ...resolved(setup.config, folder),
  };
  for (const name of Object.keys(config)) if (config[name] === undefined) delete config[name];
  const modules = resolved(setup.modules, folder) ?? {};
  const inWorkers = isolated === undefined ? [] : Object.keys(modules).filter((name) => !setup.inMain?.includes(name));
  if (inWorkers.length > 0) Object.assign(config, outsideOptions(inWorkers, folder, setup.placed));
  const files = isolated === undefined ? [] : await writeModules(isolated, inWorkers, folder);
  const given = Object.keys(modules).map((name) => {
    return files[inWorkers.indexOf(name)] ?? { name, load: modules[name] as ModuleFunction };
  });
  let logged = "";
  const certificates = join(folder, "data", "certs");
  const isPlain = Array.isArray(config.https_ports) && config.https_ports.length === 0;
  if (!isPlain && madeCertificate !== undefined)
    cpSync(madeCertificate, certificates, { recursive: true, force: false });
  const host = createHost({
    config,
    cwd: folder,
    modules: given,
    listen: setup.listen ?? true,
    log: { destination: { write: (line: string) => void (logged += line) } },
  });
  await host.start();
  if (madeCertificate === undefined && existsSync(join(certificates, "self-signed.crt"))) {
    const made = mkdtempSync(join(tmpdir(), "modhost-test-certificate-"));
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    cpSync(certificates, made, { recursive: true });
    madeCertificate = made;
  }
  const portOf = (service: string) => host.listening().find((port) => port.service === service)?.port ?? 0;
  const ports = { http: portOf("http"), https: portOf("https") };
  const clients = new Map<string, Client>();
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    for (const client of clients.values()) client.close();
    await host.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    ...ports,
    host,
    folder,
    log: () => logged,
    client(name) {
      const client = clients.get(name) ?? new Client(name, ports);
      clients.set(name, client);
      return client;
    },
    stop: () => (stopped ??= stop()),
    [Symbol.asyncDispose]: () => (stopped ??= stop()),
  };
}

/**
 * Starts one host before all tests of a file or suite, and stops it after them. Returns a function
 * that tests call to get the host.
 */
export function withHost(setup: HostSetup): () => TestHost {
  let running: TestHost | undefined;
  const isolated = registerInWorker(setup) ? undefined : setupSource();
  before(async () => {
    running = await startHost(setup, isolated);
  });
  after(() => running?.stop());
  return () => {
    if (running === undefined) throw new Error("The host has not been started: call this inside a test");
    return running;
  };
}

/** Makes a module that only provides an app. */
export function serving(provider: HttpProvider | MiddlewareProvider): ModuleFunction {
  return (module) => {
    module.depends("http");
    module.provides("http", provider);
  };
}
