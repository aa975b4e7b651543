import { type AddressInfo, createServer, type Server } from "node:net";
import { EventBus } from "#core/events.ts";
import { AppMount, type HttpEnvironment, HttpService, type HttpSettings } from "#core/http/index.ts";
import type { EventHandler, HttpProvider, Module } from "#core/types.ts";

const settings: HttpSettings = {
  maxContentSize: 64 * 1024,
  maxHeaderSize: 16 * 1024,
  headTimeout: 10,
  progressTimeout: 10,
  progressBytes: 1024,
  idleTimeout: 10,
  maxStreams: 100,
  maxUnsent: 256 * 1024 * 1024,
  trustedProxies: [],
  legacyForwarded: true,
  hosts: [],
  defaultHost: undefined,
  websocket: { pingInterval: 10, closeTimeout: 5, maxMessage: 64 * 1024, maxUnsent: 1024 * 1024 },
};

/**
 * The HTTP service without modules and configuration, with one app at `/app`, over plain HTTP on an
 * ephemeral port.
 */
export class TestService implements AsyncDisposable {
  readonly service: HttpService;
  readonly mount: AppMount;
  /** Lines logged as errors. */
  readonly errors: string[] = [];
  /** Resources that the app has registered with `on_release` and not released yet. */
  readonly unreleased = new Set<{ readonly kind: string | undefined }>();
  readonly #bus = new EventBus();
  readonly #server: Server;

  private constructor(provider: HttpProvider, overrides: Partial<HttpSettings>) {
    const record = (...words: unknown[]) => void this.errors.push(words.join(" "));
    const log = { debug() {}, info() {}, warn() {}, error: record } as HttpEnvironment["log"];
    this.service = new HttpService(
      { ...settings, ...overrides },
      {
        log,
        fire: (event, data, host) => this.#bus.fire(event, data, host),
        announce: (event, data, host) => this.#bus.announce(event, data, record, host),
        hasHooks: (event) => this.#bus.has(event),
      },
      undefined,
    );
    const owner = { name: "app", log, on_release: this.#hold } as unknown as Module;
    this.mount = new AppMount({ name: "app", base: "/app", host: "*", owner, provider, cors: undefined });
    this.service.mount(this.mount);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      this.service.listeners.connect(socket),
    );
  }

  static async start(provider: HttpProvider, overrides: Partial<HttpSettings> = {}): Promise<TestService> {
    const started = new TestService(provider, overrides);
    await new Promise<void>((resolve) => started.#server.listen(0, "127.0.0.1", resolve));
    return started;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  hook(event: string, handler: EventHandler): void {
    this.#bus.add(event, handler);
  }

  readonly #hold: Module["on_release"] = (_label, _release, kind) => {
    const entry = { kind };
    this.unreleased.add(entry);
    return () => void this.unreleased.delete(entry);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    await this.service.close(0);
  }
}
