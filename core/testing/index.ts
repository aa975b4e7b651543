/**
 * `modhost/testing`: a host for tests, with requests that need no port, a clock that can be moved,
 * modules in a sandbox, other hosts that the test plays, and a check that nothing is left of an
 * unloaded module.
 */
import { mkdtemp, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { configFrom } from "../config/index.ts";
import { createHost, type Host } from "../host.ts";
import type { InlineModule } from "../inline_modules.ts";
import type { LogLevel, ModulePermissions, ModuleRun } from "../types.ts";
import { ManualClock, realClock, type TestClock } from "./clock.ts";
import {
  type Caller,
  type InjectedRequest,
  type InjectedResponse,
  type InjectedStream,
  inject,
  injectStream,
  openConnection,
} from "./inject.ts";
import { ModulesUnderTest } from "./modules_under_test.ts";
import { noteHandles } from "./nothing_left.ts";
import type { OutsideHost, OutsideResponse } from "./outside.ts";
import type { PermissionAssertionOptions } from "./permission_assertions.ts";

export type { TestClock } from "./clock.ts";
export { type Handles, handlesNow } from "./handles.ts";
export type { Caller, InjectedBody, InjectedRequest, InjectedResponse, InjectedStream } from "./inject.ts";
export { assertNothingLeft, type LeftoverOptions } from "./nothing_left.ts";
export type { OutsideHost, OutsideRequest, OutsideResponse } from "./outside.ts";
export type { PermissionAssertionOptions } from "./permission_assertions.ts";

export interface TestHostOptions {
  /** Options that override those of the test host; undefined removes one. */
  readonly config?: Readonly<Record<string, unknown>>;
  /**
   * Paths ("./mod_hello.ts"), functions, or definitions with a name. Their dependencies are loaded,
   * too.
   */
  readonly modules?: readonly InlineModule[];
  /**
   * How the modules that `modules` names by their paths run; functions and definitions stay in the
   * host. Default: as the configuration says, which is trusted.
   */
  readonly run?: ModuleRun;
  /**
   * Permissions of these modules, for `run`. Without it a sandboxed module is granted nothing, and
   * an isolated one is not restricted.
   */
  readonly grant?: ModulePermissions;
  /** The folder from which relative paths are resolved; default: the current folder. */
  readonly cwd?: string;
  /** False: everything is loaded, but no port is opened; `inject` still works. */
  readonly listen?: boolean;
  /**
   * "manual": `module.add_timer` and `module.now` use a clock that only `clock.advance` moves.
   * Default "real": the system time.
   */
  readonly clock?: "manual" | "real";
  /** True: a module that cannot be loaded does not fail the start; see `host.modules()`. */
  readonly allow_failed?: boolean;
}

/** A log line. */
export interface LogEntry {
  readonly level: LogLevel;
  /** The module that wrote it; undefined for the host. */
  readonly module?: string;
  /** The module's host, unless the module is global. */
  readonly host?: string;
  readonly msg: string;
  /** Fields of the writer. */
  readonly [field: string]: unknown;
}

export interface TestHost extends AsyncDisposable {
  readonly host: Host;
  /** The data folder; removed by `stop`. */
  readonly folder: string;
  readonly clock: TestClock;
  /** Returns the log lines so far, as JSON, from the level "debug" on. */
  log(): readonly string[];
  /** Returns the log lines as values; only those of `level`, if it is given. */
  logged(level?: LogLevel): LogEntry[];
  /** Sends a request through the whole host without a port; a text is a path to GET. */
  inject(request: InjectedRequest | string): Promise<InjectedResponse>;
  /** Works as `inject`, but resolves as soon as the response starts; the caller must close it. */
  stream(request: InjectedRequest | string): Promise<InjectedStream>;
  /**
   * Opens a connection to the HTTP service without a port, for other clients; the caller must end
   * it.
   */
  connect(caller?: Caller): Socket;
  /** Returns the URL of a path: for plain HTTP, unless `scheme` is given. */
  url(path: string, scheme?: string): string;
  /** Sends a request over plain HTTP, through the port. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Loads a module by name or path; `assertNothingLeft` compares with the state before. */
  load(name: string): Promise<void>;
  unload(name: string): Promise<void>;
  reload(name: string): Promise<void>;
  /**
   * Plays another host, such as "https://api.example.org", for modules that `run: "sandboxed"` and
   * `grant` let connect to it. Each request gets the next response of the queue, and 501 once it is
   * empty. A second call appends responses. Only HTTP/1.1 is spoken.
   * @throws {Error} unless `run` is "sandboxed", and TypeError for a text that is not an origin
   */
  outside(origin: string, responses?: readonly OutsideResponse[]): OutsideHost;
  /**
   * Fails unless a module has tried to use each of these permissions and was refused, for example
   * `{ connect: ["evil.example:443"] }`. For read, write, run and addons it knows what Node.js has
   * refused to JavaScript, and nothing of native code.
   * @throws {AssertionError} naming what was used and refused instead
   * @throws {TypeError} for permissions that are not enforced or not counted where the module runs
   */
  assertDenied(permissions: ModulePermissions, options?: PermissionAssertionOptions): Promise<void>;
  /**
   * Fails unless a module has used each of these permissions: connect, listen, env, options or
   * call. The kernel does not count the others.
   * @throws {AssertionError} naming what was used and refused instead
   * @throws {TypeError} for permissions that are not enforced or not counted where the module runs
   */
  assertUsed(permissions: ModulePermissions, options?: PermissionAssertionOptions): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a host for a test. The caller must stop it: `await using`, or `stop`.
 * @throws the errors of `host.start`; Error for modules that cannot be loaded, unless
 * `allow_failed`; and TypeError for `run` without the path of a module, and for `grant` without
 * `run`
 */
export async function createTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  const under = await ModulesUnderTest.create(options);
  const folder = await mkdtemp(join(tmpdir(), "modhost-"));
  const lines: string[] = [];
  const defaults: Record<string, unknown> = {
    modules_enabled: [],
    http_ports: [0],
    https_ports: [],
    admin_port: 0,
    http_interfaces: ["127.0.0.1"],
    https_interfaces: ["127.0.0.1"],
    data_path: folder,
    http_log: false,
  };
  const { cwd = process.cwd(), listen = true, modules = [] } = options;
  const values = Object.entries({ ...defaults, ...options.config, ...under.settings }).filter(
    ([, value]) => value !== undefined,
  );
  const config = configFrom(Object.fromEntries(values), resolve(cwd));
  // These options count as known, even if no module that reads them is loaded.
  for (const name of Object.keys(defaults)) config.raw(name);
  const log = { level: "debug", destination: { write: (line: string) => lines.push(line) } } as const;
  const manual = options.clock === "manual" ? new ManualClock() : undefined;
  const clock = manual === undefined ? {} : { clock: manual };
  const host = createHost({ config, modules, cwd, listen, log, ...under.hostOptions, ...clock });
  let stopped: Promise<void> | undefined;
  const end = async () => {
    try {
      await host.stop();
    } finally {
      under.close();
      await rm(folder, { recursive: true, force: true });
    }
  };
  const stop = () => (stopped ??= end());
  const url = (path: string, scheme = "http") => {
    const port = host.listening().find((open) => open.scheme === scheme);
    if (port === undefined) throw new Error(`The test host has no ${scheme} port: list a module that provides one`);
    return `${scheme}://127.0.0.1:${port.port}${path}`;
  };
  const acceptOf = (caller: Caller | string = {}) => {
    const { service = "http" } = typeof caller === "string" ? {} : caller;
    return (socket: Socket) => host.connect(service, socket);
  };
  try {
    await host.start();
    if (options.allow_failed !== true) assertLoaded(host);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    host,
    folder,
    clock: manual ?? realClock,
    log: () => [...lines],
    logged: (level) => entriesOf(lines, level),
    inject: (request) => inject(acceptOf(request), request),
    stream: (request) => injectStream(acceptOf(request), request),
    connect: (caller) => openConnection(acceptOf(caller), caller),
    url,
    fetch: (path, init) => fetch(url(path), init),
    load: async (name) => {
      under.checkLoad(name);
      noteHandles(host, name);
      return host.load(name);
    },
    unload: (name) => host.unload(name),
    reload: (name) => host.reload(name),
    outside: (origin, responses = []) => under.outside(origin, responses),
    assertDenied: (permissions, given) => under.assert("denied", permissions, host.modules(), given),
    assertUsed: (permissions, given) => under.assert("used", permissions, host.modules(), given),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function entriesOf(lines: readonly string[], level: LogLevel | undefined): LogEntry[] {
  const entries = lines.map((line) => JSON.parse(line) as LogEntry);
  return level === undefined ? entries : entries.filter((entry) => entry.level === level);
}

function assertLoaded(host: Host): void {
  const failed = host.modules().filter(({ status }) => status === "failed");
  if (failed.length === 0) return;
  const causes = failed.map(({ name, note }) => `  ${name}: ${note}`).join("\n");
  throw new Error(`Modules could not be loaded (allow_failed: true starts without them):\n${causes}`);
}
