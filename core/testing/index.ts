/** `modhost/testing`: hosts for tests, on ephemeral ports of the loopback, with data in a temporary folder. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { configFrom } from "../config/index.ts";
import { createHost, type GivenModule, type Host } from "../host.ts";

export interface TestHostOptions {
  /** Options over those of tests; undefined takes one away. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly modules?: readonly GivenModule[];
  /** Relative paths count from here; default: the current folder. */
  readonly cwd?: string;
  /** False: everything is loaded and no port is opened. */
  readonly listen?: boolean;
}

export interface TestHost extends AsyncDisposable {
  readonly host: Host;
  /** The data folder; removed by `stop`. */
  readonly folder: string;
  /** Lines of the log so far. */
  log(): readonly string[];
  /** The address of a path: of plain HTTP, unless another scheme is named. */
  url(path: string, scheme?: string): string;
  /** A request over plain HTTP. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

/** Starts a host for a test. Whoever calls it stops it: `await using`, or `stop`. */
export async function createTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-"));
  const lines: string[] = [];
  const defaults: Record<string, unknown> = {
    modules_enabled: [],
    http_ports: [0],
    https_ports: [],
    http_interfaces: ["127.0.0.1"],
    https_interfaces: ["127.0.0.1"],
    data_path: folder,
    http_log: false,
  };
  const { cwd = process.cwd(), listen = true, modules = [] } = options;
  const values = Object.entries({ ...defaults, ...options.config }).filter(([, value]) => value !== undefined);
  const config = configFrom(Object.fromEntries(values), resolve(cwd));
  // Known, even when no module that reads them is loaded.
  for (const name of Object.keys(defaults)) config.raw(name);
  const log = { level: "debug", destination: { write: (line: string) => lines.push(line) } } as const;
  const host = createHost({ config, modules, cwd, listen, log });
  let stopped: Promise<void> | undefined;
  const end = async () => {
    await host.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const stop = () => (stopped ??= end());
  const url = (path: string, scheme = "http") => {
    const port = host.listening().find((open) => open.scheme === scheme);
    if (port === undefined) throw new Error(`The test host has no ${scheme} port: list a module that provides one`);
    return `${scheme}://127.0.0.1:${port.port}${path}`;
  };
  try {
    await host.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    host,
    folder,
    log: () => lines,
    url,
    fetch: (path, init) => fetch(url(path), init),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Fails unless the module is gone: not listed, and not holding anything. */
export function assertNothingLeft(host: Host, module: string): void {
  const left = host.modules().filter(({ name, status }) => name === module && status !== "failed");
  assert.deepEqual(left, [], `the module ${module} has left something behind`);
}
