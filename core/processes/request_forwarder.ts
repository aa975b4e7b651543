/**
 * Forwards requests that another process of the server has to answer, over the IPC socket of that
 * process.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Socket } from "node:net";
import type { Handover } from "../http/connection/upgrade.ts";
import type { TrustedProxies } from "../http/policy/proxies.ts";
import type { RequestSiblings } from "../http/service.ts";
import { ConnectionHandoff } from "../relay/connection_handoff.ts";
import { openInnerRequest } from "../relay/inner_request.ts";
import { joinTunnels } from "../relay/tunnel.ts";
import { Agent } from "../util/node_http.ts";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";
import { routeConnection } from "./connection_routing.ts";
import { forwardRequest } from "./forwarded_request.ts";
import type { IpcSocket } from "./ipc_socket.ts";
import type { KnownIpcSocket, PrimaryScope } from "./messages.ts";
import type { RoleDeps } from "./role.ts";
import { requestPath, sharedPaths } from "./shared_paths.ts";
import { StickyClients } from "./sticky.ts";

/**
 * Milliseconds after which an unused connection to another process is closed: sooner than that
 * process closes it.
 */
const IDLE_MS = 4000;

const nowhere = (): boolean => false;

export interface RequestForwarderDeps {
  /** The number of this process among `count`. */
  readonly number: number;
  readonly count: number;
  readonly ipcSocket: IpcSocket;
  readonly handoff: ConnectionHandoff;
  /** Called when the apps of this process may have changed. */
  mounted?(): void;
}

/** Returns the forwarder of a process that the supervisor has started. */
export function requestForwarderOf(
  { begin, supervisor }: RoleDeps,
  ipcSocket: IpcSocket,
  mounted?: () => void,
): RequestForwarder {
  const { number, count, scope, ipcSockets } = begin;
  // All connections go through the supervisor, which knows the running processes.
  const handoff = new ConnectionHandoff(() => supervisor);
  const forwarder = new RequestForwarder({
    number,
    count,
    ipcSocket,
    handoff,
    ...(mounted === undefined ? {} : { mounted }),
  });
  if (scope !== undefined) forwarder.use(scope);
  forwarder.reach(ipcSockets);
  return forwarder;
}

export class RequestForwarder implements RequestSiblings {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });
  readonly #deps: RequestForwarderDeps;
  readonly #sticky: StickyClients;
  /** Whether the primary has to answer the requests for a path. */
  #isOfPrimary: (path: string) => boolean = nowhere;
  #ipcSockets: ReadonlyMap<number, KnownIpcSocket> = new Map();
  /**
   * The processes that have to answer requests, where that is another one than this process and the
   * primary.
   */
  readonly #targets = new WeakMap<NodeRequest, number>();
  /** Resolves when the processes that serve have changed. */
  #changed = Promise.withResolvers<void>();

  constructor(deps: RequestForwarderDeps) {
    this.#deps = deps;
    this.#sticky = new StickyClients(deps.number, deps.count);
  }

  use(scope: PrimaryScope): void {
    if (this.#deps.number !== 1) this.#isOfPrimary = sharedPaths(scope);
    this.#sticky.use(scope.sticky);
  }

  /** Sets the IPC sockets of all processes. */
  reach(sockets: readonly KnownIpcSocket[]): void {
    this.#ipcSockets = new Map(sockets.map((socket) => [socket.number, socket]));
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Resolves when no connection is on its way to another process. */
  async close(): Promise<void> {
    this.#agent.destroy();
    await this.#deps.handoff.close();
  }

  get #isUsed(): boolean {
    return this.#sticky.isUsed || this.#isOfPrimary !== nowhere;
  }

  begins(socket: Socket, serve: () => void, patience: number, proxies: TrustedProxies): void {
    if (!this.#isUsed || this.#deps.ipcSocket.isInner({ socket })) {
      serve();
      return;
    }
    routeConnection(socket, serve, patience, {
      processFor: (path) =>
        this.#isOfPrimary(path) ? 1 : this.#other(this.#sticky.processForConnection(path, socket, proxies)),
      handOver: (head, to) => this.#deps.handoff.takeFrom(socket, { service: "http", head, to }),
    });
  }

  arrived(request: IncomingMessage): void {
    this.#deps.ipcSocket.arrived(request);
  }

  mounted(): void {
    this.#deps.mounted?.();
  }

  takes(request: NodeRequest, proxies: TrustedProxies): boolean {
    if (!this.#isUsed || this.#deps.ipcSocket.isInner(request)) return false;
    const path = requestPath(request.url ?? "");
    if (path === undefined) return false;
    if (this.#isOfPrimary(path)) return true;
    if (!this.#sticky.isUsed) return false;
    const target = this.#other(this.#sticky.processFor(path, request, proxies));
    if (target !== undefined) this.#targets.set(request, target);
    return target !== undefined;
  }

  stays(request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void {
    const path = this.#sticky.hasCookies ? requestPath(request.url ?? "") : undefined;
    if (path !== undefined) this.#sticky.welcome(path, request, response, proxies);
  }

  /**
   * Returns the number if it is that of another process that serves. This process answers the
   * requests of a process that does not serve, because what that process kept of its clients has
   * gone with it.
   */
  #other(number: number | undefined): number | undefined {
    if (number === undefined || number === this.#deps.number) return undefined;
    return this.#ipcSockets.get(number)?.isOpen === true ? number : undefined;
  }

  serve(request: NodeRequest, response: NodeResponse, isLast: boolean): void {
    const changed = () => this.#changed.promise;
    void forwardRequest(request, response, { open: () => this.#open(request), changed, isLast });
  }

  serveUpgrade(request: IncomingMessage, handover: Handover): void {
    void forwardRequest(request, handover.response, {
      open: () => this.#open(request, request.headers.upgrade ?? "websocket"),
      changed: () => this.#changed.promise,
      upgraded(server, fields) {
        const client = handover.take();
        handover.detach();
        joinTunnels(client, server, fields);
      },
      isLast: true,
    });
  }

  #open(request: NodeRequest, upgrade?: string): ClientRequest {
    const { path = "", token = "" } = this.#ipcSockets.get(this.#targets.get(request) ?? 1) ?? {};
    const target = { path, token, agent: this.#agent };
    return openInnerRequest(request, target, {
      host: (request as Http2ServerRequest).authority,
      upgrade,
      passesExpect: upgrade === undefined,
      facts: { isOld: request.httpVersion === "1.0" },
    });
  }
}
