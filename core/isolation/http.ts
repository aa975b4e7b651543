/**
 * Serves the apps of a module in its worker or sandbox. Requests come from the host over a socket
 * of the system.
 */
import type { IncomingMessage } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { AppMount, appName, basePath, type HttpEnvironment, HttpService, originPolicy } from "../http/index.ts";
import { idElsewhere } from "../http/message/request.ts";
import { listenAt } from "../ports/listen.ts";
import { serializeError } from "../relay/errors.ts";
import { admit, asciiJson, PASSED_FIELD, REFUSED_FIELD } from "../relay/inner_request.ts";
import { RelayedMessage } from "../relay/relayed_message.ts";
import { ServedRequests } from "../relay/served_requests.ts";
import { remoteToken, type ScopeKinds } from "../tokens/index.ts";
import type { HttpErrorEvent, HttpProvider, Module, OwnedItem, TokenRefusal, Tokens } from "../types.ts";
import type { TokenBearer } from "../util/token_use.ts";
import { currentRequest } from "./current_request.ts";
import type { WorkerLog } from "./log.ts";
import type { Bearer, Refusal, Serving, WorkerRequestFacts } from "./messages.ts";
import { traceRequest } from "./traced.ts";

/** Characters of an error's message, and of its stack, that are sent to the host in a header. */
const MAX_SENT = 1000;

/** A timeout in seconds that no request reaches. */
const UNLIMITED = 86_400;

/** The worker sets no limits, because the host applies its own to the clients. */
const bounds = {
  headTimeout: UNLIMITED,
  progressTimeout: UNLIMITED,
  progressBytes: 0,
  idleTimeout: UNLIMITED,
  maxUnsent: Number.MAX_SAFE_INTEGER,
  defaultHeaders: undefined,
};

type Item = OwnedItem<HttpProvider>;

export class WorkerHttp {
  readonly #mounts = new Map<Item, AppMount>();
  /** Virtual hosts for which an app passes requests back that no handler responds to. */
  readonly #passing = new Set<string>();
  readonly #log: WorkerLog;
  readonly #tokens: Tokens;
  readonly #listen: ((server: Server) => Promise<void>) | undefined;
  #service: HttpService | undefined;
  #grace = 10;
  #isLeaving = false;
  /** Whether the module depends on `http`. */
  isUsed = false;

  /**
   * `kinds` are those that the module declares. `listen` makes a server listen; without it the host
   * names a path.
   */
  constructor(log: WorkerLog, kinds: ScopeKinds, listen?: (server: Server) => Promise<void>) {
    this.#log = log;
    this.#listen = listen;
    this.#tokens = checkedTokens(kinds);
  }

  add(item: Item): void {
    if (this.#service === undefined || this.#mounts.has(item)) return;
    const mount = mountOf(item);
    this.#mounts.set(item, mount);
    this.#service.mount(mount);
    const { owner } = item;
    if (this.#passing.has(owner.host)) return;
    this.#passing.add(owner.host);
    this.#service.mount(mountOf({ owner, item: passing }, ""));
  }

  /**
   * Starts to listen. These apps respond at once: the host decides when they go live, and its first
   * request may arrive before the message that they are live.
   */
  async serve({ path, token, settings, grace }: Serving, apps: readonly Item[]): Promise<void> {
    this.#grace = grace;
    const service = new HttpService({ ...settings, ...bounds }, this.#environment(token), undefined);
    this.#service = service;
    for (const item of apps) this.add(item);
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#connect(service, socket, token));
    await (this.#listen === undefined ? listenAt(server, { path }) : this.#listen(server));
  }

  /** Serves a connection of the host: one with frames of requests, or one for a websocket. */
  #connect(service: HttpService, socket: Socket, token: string): void {
    socket.on("error", () => undefined);
    socket.once("readable", () => {
      const first: Buffer | null = socket.read(socket.readableLength);
      if (first === null) socket.destroy();
      else if (first[0] === 0) {
        new ServedRequests(socket, first, token, (request, response, id, facts) => {
          store(request, facts === "" ? { id } : { id, ...JSON.parse(facts) });
          currentRequest.run({ id, fetches: 0 }, () => service.serve(request, response));
        });
      } else {
        socket.unshift(first);
        service.listeners.connect(socket);
      }
    });
  }

  /**
   * Notifies the requests and websockets of all apps that they are to end, and waits for them.
   * Requests that the host has forwarded before may still arrive: the apps respond until the worker
   * ends.
   */
  async leave(closeCode: number): Promise<void> {
    this.#isLeaving = true;
    await Promise.all([...this.#mounts.values()].map((mount) => mount.retire(this.#grace, closeCode)));
  }

  /** Removes an app. Resolves when its requests have ended. */
  async remove(item: Item): Promise<void> {
    const mount = this.#mounts.get(item);
    if (this.#isLeaving || mount === undefined) return;
    this.#mounts.delete(item);
    this.#service?.unmount(mount);
    await mount.retire(this.#grace);
  }

  #environment(token: string): HttpEnvironment {
    return {
      // The host makes error pages, because the hooks for them are there.
      fire: (event, data) => {
        if (event !== "http-error") return undefined;
        const { code, response, message, error } = data as HttpErrorEvent;
        response.headers[REFUSED_FIELD] = asciiJson(refusalOf(message, error));
        // The lines are in the log before the client gets the error page.
        return code < 500 && error === undefined ? " " : this.#log.taken().then(() => " ");
      },
      announce: () => undefined,
      typesElsewhere: true,
      hasHooks: (event) => event === "http-error",
      log: this.#log.host,
      arrived: (request) => {
        if (!(request instanceof RelayedMessage)) store(request, admit(request, token));
      },
      tokens: this.#tokens,
    };
  }
}

const bearers = new WeakMap<object, Bearer>();

/** Returns the tokens of requests as the host has reported them: the host has checked each. */
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

const unchecked: TokenRefusal = { status: 401, message: "The host has admitted nobody", headers: {} };

const pass = (context: { status: number; body: unknown; set(field: string, value: string): void }) => {
  context.status = 404;
  context.set(PASSED_FIELD, "1");
  context.body = " ";
};

/** An app that comes after all others of its host. */
const passing: HttpProvider = {
  middleware: pass as never,
  route: {},
  streaming_uploads: true,
  priority: Number.NEGATIVE_INFINITY,
};

function mountOf({ owner, item: provider }: Item, base?: string): AppMount {
  const { name = appName(owner.name), default_path } = provider;
  const paths = (owner as Module).get_option_object("http_paths") ?? {};
  return new AppMount({
    name,
    owner,
    provider,
    host: owner.host,
    base: base ?? basePath(name, owner.host, paths[name] ?? default_path),
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

/** Stores the facts that the host has sent with a forwarded request. */
function store(request: IncomingMessage, { id, bearer, traced }: Partial<WorkerRequestFacts> = {}): void {
  if (id !== undefined) (request as { [idElsewhere]?: string })[idElsewhere] = id;
  if (bearer !== undefined) bearers.set(request, bearer);
  if (traced !== undefined) traceRequest(request, traced);
}
