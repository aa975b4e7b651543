/** Serves the apps of an isolated module inside its worker: requests come from the host over a socket of the system. */
import { createServer, type Server, type Socket } from "node:net";
import { AppMount, appName, basePath, type HttpEnvironment, HttpService, originPolicy } from "../http/index.ts";
import { idsElsewhere } from "../http/request.ts";
import { heldElsewhere } from "../tokens/index.ts";
import type { HttpErrorEvent, HttpProvider, Module, OwnedItem, TokenRefusal, Tokens } from "../types.ts";
import type { TokenBearer } from "../util/token_use.ts";
import { sentError } from "./channel.ts";
import type { WorkerLog } from "./log.ts";
import {
  type Bearer,
  inAscii,
  PASSED_FIELD,
  PEER_FIELD,
  type Peer,
  REFUSED_FIELD,
  type Refusal,
  type RequestFacts,
  type Serving,
} from "./messages.ts";

/** Letters of an error's message and stack, each, that go to the host: they go in a header. */
const MAX_TOLD = 1000;

/** The host keeps these bounds towards the clients. */
const UNLIMITED = 86_400;

type Item = OwnedItem<HttpProvider>;

export class WorkerHttp {
  readonly #mounts = new Map<Item, AppMount>();
  /** Behind them: what no handler of the module answers is for the host. */
  #rest: readonly AppMount[] = [];
  readonly #log: WorkerLog;
  readonly #added: (item: Item) => void;
  #service: HttpService | undefined;
  #server: Server | undefined;
  #grace = 10;
  #isLeaving = false;
  /** The module depends on `http`. */
  isAsked = false;

  /** `added` hears of each app that is there. */
  constructor(log: WorkerLog, added: (item: Item) => void) {
    this.#log = log;
    this.#added = added;
  }

  /** The app is there; what is returned takes it away. */
  add(item: Item): () => Promise<void> {
    if (!this.#mounts.has(item)) {
      const mount = mountOf(item, item.item);
      this.#mounts.set(item, mount);
      this.#service?.mount(mount);
      this.#placeRest();
    }
    this.#added(item);
    return () => this.#remove(item);
  }

  items(): Item[] {
    return [...this.#mounts.keys()];
  }

  /**
   * Listens from now on. These apps answer at once: the host decides when they go live, and its first request may overtake
   * the word that they are.
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
    this.#placeRest();
    this.#server = createServer({ allowHalfOpen: true }, (socket) => service.listeners.connect(socket));
    await new Promise<void>((resolve, reject) => this.#server?.once("error", reject).listen(path, resolve));
  }

  /**
   * Tells the requests and websockets of all apps that they are to end, and waits for them. What the host handed over
   * before may still be on its way: the apps answer until the worker ends.
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
    this.#placeRest();
    return mount.retire(this.#grace);
  }

  #placeRest(): void {
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
        response.headers[REFUSED_FIELD] = inAscii(refusalOf(message, error));
        // Who has the page finds in the log what it is about.
        return code < 500 && error === undefined ? " " : this.#log.taken().then(() => " ");
      },
      announce: () => undefined,
      typesElsewhere: true,
      hasHooks: (event) => event === "http-error",
      log: this.#log.host,
      arrived: (request) => admit(request, token),
      tokens: checkedTokens,
    };
  }
}

const bearers = new WeakMap<object, Bearer>();

/** The host has asked for the token: here it is told whose it is. */
const checkedTokens: Tokens = {
  identify(request) {
    const bearer = bearers.get(request.raw);
    if (bearer === undefined) return undefined;
    const token = heldElsewhere(bearer);
    (request as unknown as TokenBearer).bear(token);
    return token;
  },
  authorize: (request) => checkedTokens.identify(request) ?? unchecked,
  lacks: () => unchecked,
};

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
  const error = sentError(thrown);
  const clipped = { message: error.message.slice(0, MAX_TOLD), stack: error.stack?.slice(0, MAX_TOLD) };
  return { message: message?.slice(0, MAX_TOLD), error: { ...error, ...clipped } };
}

/** Takes from a request what the host says of its client, and ends the connection of whoever is not the host. */
export function admit(
  request: { rawHeaders: string[]; headers: Record<string, unknown>; socket: Socket; httpVersion: string },
  token: string,
): void {
  const { rawHeaders, headers, socket } = request;
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name === PEER_FIELD);
  const facts: Partial<RequestFacts> = at < 0 ? {} : JSON.parse(rawHeaders[at + 1] as string);
  if (at >= 0) rawHeaders.splice(at, 2);
  delete headers[PEER_FIELD];
  if (facts.token !== token) {
    socket.destroy();
    return;
  }
  if (facts.id !== undefined) idsElsewhere.set(request, facts.id);
  if (facts.bearer !== undefined) bearers.set(request, facts.bearer);
  if (facts.isOld === true) request.httpVersion = "1.0";
  if (facts.peer !== undefined) disguise(socket, facts.peer);
}

const PEER_NAMES = ["remoteAddress", "remotePort", "localAddress", "localPort", "encrypted"] as const;

/** Whose request a connection from the host carries. */
const shown = new WeakMap<Socket, Peer>();

/** From now on a connection from the host looks like that of the client whose request it carries. */
function disguise(socket: Socket, peer: Peer): void {
  const isNew = !shown.has(socket);
  shown.set(socket, peer);
  if (!isNew) return;
  for (const name of PEER_NAMES) {
    Object.defineProperty(socket, name, { get: () => shown.get(socket)?.[name], configurable: true });
  }
}
