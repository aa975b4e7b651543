/**
 * Runs modules on the real HTTP service behind a loopback port, with the event bus of the host and
 * a module object that records what is added to it. Options come from a table. The life cycle of
 * modules is not simulated.
 */
import { EventEmitter, once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { EventBus } from "#core/events.ts";
import { AppMount, HttpService } from "#core/http/index.ts";
import type { EventHandler, HttpProvider, Module, ModuleLog } from "#core/types.ts";

export interface HarnessResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

export class Harness {
  readonly bus = new EventBus();
  readonly logged: string[] = [];
  readonly statuses: string[] = [];
  readonly #service: HttpService;
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#service.listeners.connect(socket));
  readonly #releases: (() => unknown)[] = [];
  /** Emits "finished" after each request. */
  readonly events = new EventEmitter();

  constructor() {
    const log = this.#log();
    const settings = {
      maxContentSize: 1_000_000,
      maxHeaderSize: 16_384,
      headTimeout: 30,
      progressTimeout: 30,
      progressBytes: 1,
      idleTimeout: 30,
      maxStreams: 100,
      maxUnsent: 256 * 1024 * 1024,
      trustedProxies: [],
      legacyForwarded: true,
      hosts: [],
      defaultHost: undefined,
      websocket: { pingInterval: 30, closeTimeout: 5, maxMessage: 1_000_000, maxUnsent: 1_000_000 },
    };
    this.#service = new HttpService(
      settings,
      {
        fire: (event, data) => this.bus.fire(event, data),
        announce: (event, data) => this.bus.announce(event, data, () => undefined),
        hasHooks: (event) => this.bus.has(event),
        log,
      },
      undefined,
    );
    this.bus.add("http-finished", (event: unknown) => void this.events.emit("finished", event), 100);
  }

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Returns a module object with this name. Options that are not given have no value. */
  module(name: string, given: Record<string, unknown> = {}): Module {
    const option = (key: string, fallback?: unknown) => given[key] ?? fallback;
    const owned: Partial<Module> = {
      name,
      host: "*",
      log: this.#log(),
      depends: (() => undefined) as Module["depends"],
      provides: (_kind: string, item: object) => {
        const provider = item as HttpProvider;
        const app = name.replace(/^http_/, "");
        const base = provider.default_path ?? `/${app}`;
        this.#service.mount(new AppMount({ name: app, host: "*", base, owner: module, provider, cors: undefined }));
        return async () => undefined;
      },
      hook: (event: string, handler: EventHandler, priority?: number) => void this.bus.add(event, handler, priority),
      fire_event: (event, data) => this.bus.fire(event, data),
      on_release: (_label, release) => {
        this.#releases.push(release);
        return () => undefined;
      },
      set_status: (level, text) => void this.statuses.push(`${level} ${text}`),
      modules: () => [],
      get_option_boolean: option as Module["get_option_boolean"],
      get_option_integer: option as Module["get_option_integer"],
      get_option_string: option as Module["get_option_string"],
      get_option_period: option as Module["get_option_period"],
      get_option_array: option as Module["get_option_array"],
      get_option_object: option as Module["get_option_object"],
      get_option_path: option as Module["get_option_path"],
      get_option_enum: ((key: string, _values: unknown, fallback: unknown) =>
        option(key, fallback)) as Module["get_option_enum"],
    };
    const module = owned as Module;
    return module;
  }

  fetch(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<HarnessResponse> {
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.port, path, method, headers, agent: false };
      const outgoing = httpRequest(options, async (response) => {
        try {
          const body = Buffer.concat(await response.toArray());
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body, text: body.toString() });
        } catch (error) {
          reject(error);
        }
      });
      outgoing.on("error", reject).end();
    });
  }

  /** Opens a connection and sends the text. */
  async raw(text: string) {
    const socket = connect(this.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(text);
    return socket;
  }

  /** Calls the functions that modules have passed to `on_release`. */
  async release(): Promise<void> {
    for (const release of this.#releases.splice(0).reverse()) await release();
  }

  async stop(): Promise<void> {
    await this.release();
    this.#server.close();
    await this.#service.close(0);
  }

  #log(): ModuleLog {
    const write =
      (level: string) =>
      (format: string, ...values: unknown[]) => {
        this.logged.push([level, format, ...values].join(" "));
      };
    const log = (level: string, format: string, ...values: unknown[]) => write(level)(format, ...values);
    return Object.assign(log, {
      debug: write("debug"),
      info: write("info"),
      warn: write("warn"),
      error: write("error"),
    }) as ModuleLog;
  }
}
