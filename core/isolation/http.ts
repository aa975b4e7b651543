/**
 * Serves the apps of an isolated module in its worker. Requests come from the host over a socket of
 * the system.
 */
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:net";
import { AppMount, appName, basePath, type HttpEnvironment, HttpService, originPolicy } from "../http/index.ts";
import { idsElsewhere } from "../http/message/request.ts";
import { serializeError } from "../relay/errors.ts";
import { admit, asciiJson, PASSED_FIELD, REFUSED_FIELD } from "../relay/inner_request.ts";
import { remoteToken, type ScopeKinds } from "../tokens/index.ts";
import type { HttpErrorEvent, HttpProvider, Module, OwnedItem, TokenRefusal, Tokens } from "../types.ts";
import type { TokenBearer } from "../util/token_use.ts";
import type { WorkerLog } from "./log.ts";
import type { Bearer, Refusal, Serving, WorkerRequestFacts } from "./messages.ts";
import { traceRequest } from "./traced.ts";

/** Characters of an error's message, and of its stack, that are sent to the host in a header. */
const MAX_SENT = 1000;

/** Seconds. The host applies its bounds to the clients, so the worker has none. */
const UNLIMITED = 86_400;

type Item = OwnedItem<HttpProvider>;

export class WorkerHttp {
  readonly #mounts = new Map<Item, AppMount>();
  /** Behind them: they pass requests back to the host that no handler of the module answers. */
  #rest: readonly AppMount[] = [];
  readonly #log: WorkerLog;
  readonly #added: (item: Item) => void;
  readonly #tokens: Tokens;
  #service: HttpService | undefined;
  #server: Server | undefined;
  #grace = 10;
  #isLeaving = false;
  /** The module depends on `http`. */
  isUsed = false;

  /** `kinds` are those that the module declares; `added` is called for each app. */
  constructor(log: WorkerLog, kinds: ScopeKinds, added: (item: Item) => void) {
    this.#log = log;
    this.#tokens = checkedTokens(kinds);
    this.#added = added;
  }

  /** Adds an app. The returned function removes it. */
  add(item: Item): () => Promise<void> {
    if (!this.#mounts.has(item)) {
      const mount = mountOf(item, item.item);
      this.#mounts.set(item, mount);
      this.#service?.mount(mount);
      this.#mountRest();
    }
    this.#added(item);
    return () => this.#remove(item);
  }

  items(): Item[] {
    return [...this.#mounts.keys()];
  }

  /**
   * Listens from now on. These apps answer at once: the host decides when they go live, and its
   * first request may overtake the word that they are.
   */
  async serve({ path, token, settings, grace }: Serving, apps: readonly Item[]): Promise<void> {
    this.#grace = grace;
    for (const item of apps) this.#mounts.set(item, mountOf(item, item.item));
    const bounds = {
      headTimeout: UNLIMITED,
      progressTimeout: UNLIMITED,
      progressBytes: 0,
      idleTimeout: UNLIMITED,
      maxUnsent: Number.MAX_SAFE_INTEGER,
      defaultHeaders: undefined,
    };
    const service = new HttpService({ ...settings, ...bounds }, this.#environment(token), undefined);
    this.#service = service;
    for (const mount of this.#mounts.values()) service.mount(mount);
    this.#mountRest();
    this.#server = createServer({ allowHalfOpen: true }, (socket) => service.listeners.connect(socket));
    await new Promise<void>((resolve, reject) => this.#server?.once("error", reject).listen(path, resolve));
  }

  /**
   * Tells the requests and websockets of all apps that they are to end, and waits for them.
   * Requests that the host has forwarded before may still arrive: the apps answer until the worker
   * ends.
   */
  async leave(closeCode: number): Promise<void> {
    this.#isLeaving = true;
    await Promise.all([...this.#mounts.values()].map((mount) => mount.retire(this.#grace, closeCode)));
  }

  #remove(item: Item): Promise<void> {
    if (this.#isLeaving) return Promise.resolve();
    const mount = this.#mounts.get(item);
    if (mount === undefined) return Promise.resolve();
    this.#mounts.delete(item);
    this.#service?.unmount(mount);
    this.#mountRest();
    return mount.retire(this.#grace);
  }

  #mountRest(): void {
    for (const mount of this.#rest) this.#service?.unmount(mount);
    this.#rest = [...this.#mounts.keys()].map((item) => mountOf(item, { ...item.item, middleware: pass, route: {} }));
    for (const mount of this.#rest) this.#service?.mount(mount);
  }

  #environment(token: string): HttpEnvironment {
    return {
      // Pages of errors are made by the host, where the hooks for them are.
      fire: (event, data) => {
        if (event !== "http-error") return undefined;
        const { code, response, message, error } = data as HttpErrorEvent;
        response.headers[REFUSED_FIELD] = asciiJson(refusalOf(message, error));
        // The log must have its lines before somebody who sees the page looks for them.
        return code < 500 && error === undefined ? " " : this.#log.taken().then(() => " ");
      },
      announce: () => undefined,
      typesElsewhere: true,
      hasHooks: (event) => event === "http-error",
      log: this.#log.host,
      arrived: (request) => arrived(request, admit(request, token)),
      tokens: this.#tokens,
    };
  }
}

const bearers = new WeakMap<object, Bearer>();

/** The host has checked the token of a request, and has sent whose it is. */
function checkedTokens(kinds: ScopeKinds): Tokens {
  const identify: Tokens["identify"] = (request) => {
    const bearer = bearers.get(request.raw);
    if (bearer === undefined) return undefined;
    const token = remoteToken(bearer, kinds);
    (request as unknown as TokenBearer).bear(token);
    return token;
  };
  return { identify, authorize: (request) => identify(request) ?? unchecked, lacks: () => unchecked };
}

const unchecked: TokenRefusal = { status: 401, message: "The host has let nobody in", headers: {} };

const pass = (context: { status: number; body: unknown; set(field: string, value: string): void }) => {
  context.status = 404;
  context.set(PASSED_FIELD, "1");
  context.body = " ";
};

function mountOf({ owner }: Item, provider: object): AppMount {
  const { name = appName(owner.name), default_path } = provider as HttpProvider;
  const paths = (owner as Module).get_option_object("http_paths") ?? {};
  return new AppMount({
    name,
    owner,
    provider: provider as HttpProvider,
    host: owner.host,
    base: basePath(name, owner.host, paths[name] ?? default_path),
    cors: undefined,
    takesLate: true,
    // The host has checked the origin.
    origins: originPolicy(["*"], undefined, undefined),
  });
}

function refusalOf(message: string | undefined, thrown: unknown): Refusal {
  if (thrown === undefined) return { message, error: undefined };
  const error = serializeError(thrown);
  const clipped = { message: error.message.slice(0, MAX_SENT), stack: error.stack?.slice(0, MAX_SENT) };
  return { message: message?.slice(0, MAX_SENT), error: { ...error, ...clipped } };
}

/** Keeps what the host says about a request that it has forwarded. */
function arrived(request: IncomingMessage, { id, bearer, traced }: Partial<WorkerRequestFacts> = {}): void {
  if (id !== undefined) idsElsewhere.set(request, id);
  if (bearer !== undefined) bearers.set(request, bearer);
  if (traced !== undefined) traceRequest(request, traced);
}
