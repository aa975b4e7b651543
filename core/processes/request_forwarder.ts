/**
 * Forwards requests and connections to the process of the server that serves them, and takes those
 * that other processes forward.
 */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { createServer, type Socket } from "node:net";
import type { Handover } from "../http/connection/upgrade.ts";
import type { TrustedProxies } from "../http/policy/proxies.ts";
import type { RequestSiblings } from "../http/service.ts";
import { listenAt } from "../ports/listen.ts";
import { ConnectionHandoff } from "../relay/connection_handoff.ts";
import { admit, innerPath, openInnerRequest } from "../relay/inner_request.ts";
import { type HandedConnection, socketOf } from "../relay/ipc_channel.ts";
import { joinTunnels } from "../relay/tunnel.ts";
import { Agent, type ClientRequest } from "../util/node_http.ts";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";
import { routeConnection } from "./connection_routing.ts";
import { forwardRequest } from "./forwarded_request.ts";
import type { Begin, ServerState } from "./messages.ts";
import type { RoleDeps } from "./role.ts";
import { requestPath, sharedPaths } from "./shared_paths.ts";
import { StickyClients } from "./sticky.ts";

/**
 * Milliseconds after which this process closes an unused connection to another one. The other one
 * would close it later.
 */
const IDLE_MS = 4000;

const nowhere = (): boolean => false;

export class RequestForwarder implements RequestSiblings {
  /** Called when the apps of this process may have changed. */
  readonly mounted: () => void;
  readonly #begin: Begin;
  readonly #host: RoleDeps["host"];
  readonly #server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    this.#inner.add(socket);
    this.#serve("http", socket);
  });
  /** Connections from other processes. Their requests are not forwarded again. */
  readonly #inner = new WeakSet<object>();
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });
  readonly #handoff: ConnectionHandoff;
  readonly #sticky: StickyClients;
  /** Whether only the primary can serve the requests for a path. */
  #isOfPrimary: (path: string) => boolean = nowhere;
  #serving: ReadonlySet<number> = new Set();
  /** Numbers of the processes to which requests are forwarded. */
  readonly #targets = new WeakMap<NodeRequest, number>();
  /** Resolves when the processes that serve may have changed. */
  #changed = Promise.withResolvers<void>();

  constructor({ begin, supervisor, host }: RoleDeps, mounted: () => void) {
    this.mounted = mounted;
    this.#begin = begin;
    this.#host = host;
    // All connections go through the supervisor, which knows the running processes.
    this.#handoff = new ConnectionHandoff(() => supervisor);
    this.#sticky = new StickyClients(begin.number, begin.count);
    this.use(begin);
  }

  use({ scope, serving }: ServerState): void {
    this.#serving = new Set(serving);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
    if (scope === undefined) return;
    if (this.#begin.number !== 1) this.#isOfPrimary = sharedPaths(scope);
    this.#sticky.use(scope.sticky);
  }

  /** Listens for requests of other processes. */
  open(): Promise<void> {
    return listenAt(this.#server, { path: this.#pathOf(this.#begin.number) });
  }

  /** Resolves when no connection is on its way to another process. */
  async close(): Promise<void> {
    this.#server.close();
    this.#agent.destroy();
    await this.#handoff.close();
  }

  /** Serves a connection of which another process has read the first bytes. */
  takeConnection(connection: HandedConnection): void {
    const socket = socketOf(connection);
    // The other process has routed the connection to this one, which must not route it again.
    this.#inner.add(socket);
    this.#serve(connection.service, socket);
    this.#inner.delete(socket);
  }

  begins(socket: Socket, serve: () => void, patience: number, proxies: TrustedProxies): void {
    if (!this.#isUsed || this.#inner.has(socket)) {
      serve();
      return;
    }
    routeConnection(socket, serve, patience, (path, head) => {
      const to = this.#target(path, () => this.#sticky.processForConnection(path, socket, proxies));
      if (to !== undefined) this.#handoff.takeFrom(socket, { service: "http", head, to });
      return to !== undefined;
    });
  }

  /** Reads the facts about the client of a forwarded request. */
  arrived(request: IncomingMessage): void {
    if (this.#inner.has(request.socket)) admit(request, this.#begin.token);
  }

  takes(request: NodeRequest, proxies: TrustedProxies): boolean {
    if (!this.#isUsed || this.#inner.has(request.socket)) return false;
    const path = requestPath(request.url ?? "");
    if (path === undefined) return false;
    const target = this.#target(path, () => this.#sticky.processFor(path, request, proxies));
    if (target !== undefined) this.#targets.set(request, target);
    return target !== undefined;
  }

  stays(request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void {
    const path = this.#sticky.hasCookies ? requestPath(request.url ?? "") : undefined;
    if (path !== undefined) this.#sticky.welcome(path, request, response, proxies);
  }

  serve(request: NodeRequest, response: NodeResponse, isLast: boolean, handover?: Handover): void {
    const upgrade = handover && ((request.headers.upgrade as string | undefined) ?? "websocket");
    void forwardRequest(request, response, {
      open: () => this.#open(request, upgrade),
      changed: () => this.#changed.promise,
      upgraded:
        handover &&
        ((server, fields) => {
          const client = handover.take();
          handover.detach();
          joinTunnels(client, server, fields);
        }),
      isLast: isLast || handover !== undefined,
    });
  }

  #serve(service: string, socket: Socket): void {
    socket.on("error", () => undefined);
    try {
      this.#host()?.connect(service, socket);
    } catch {
      socket.destroy(); // The module of the service has been unloaded.
    }
  }

  get #isUsed(): boolean {
    return this.#sticky.isUsed || this.#isOfPrimary !== nowhere;
  }

  /**
   * Returns the number of the process that serves a request for this path; undefined for this
   * process. This process also serves sticky clients whose process has ended, because the state of
   * these clients is lost anyway.
   */
  #target(path: string, sticky: () => number | undefined): number | undefined {
    if (this.#isOfPrimary(path)) return 1;
    const number = sticky();
    return number !== undefined && number !== this.#begin.number && this.#serving.has(number) ? number : undefined;
  }

  #open(request: NodeRequest, upgrade: string | undefined): ClientRequest {
    const path = this.#pathOf(this.#targets.get(request) as number);
    const target = { path, token: this.#begin.token, agent: this.#agent };
    return openInnerRequest(request, target, {
      host: (request as Http2ServerRequest).authority,
      upgrade,
      passesExpect: upgrade === undefined,
      facts: { isOld: request.httpVersion === "1.0" },
    });
  }

  /** The path of the IPC socket of a process. */
  #pathOf(number: number): string {
    return innerPath(this.#begin.folder, String(number));
  }
}
