/** Requests that another process answers: handed over as they come, over a socket of the system, and answered with what comes back. */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Socket } from "node:net";
import type { NodeRequest, NodeResponse } from "../http/node_messages.ts";
import type { TrustedProxies } from "../http/proxies.ts";
import { connectionFields, joinSockets, switchingHead } from "../http/relay.ts";
import type { RequestSiblings } from "../http/service.ts";
import type { Handover } from "../http/upgrade.ts";
import { peerOf } from "../isolation/forward.ts";
import { inAscii, PEER_FIELD } from "../isolation/messages.ts";
import { Agent, request as openRequest } from "../util/node_http.ts";
import type { Door } from "./door.ts";
import { answerWith, HandedRequest, type HandedRequestDeps, hasOpenBody, refuseLater } from "./handed_request.ts";
import type { KnownDoor, Shared } from "./messages.ts";
import type { MemberDeps } from "./role.ts";
import { requestPath, sharedPaths } from "./shared_paths.ts";
import { type PassConnection, steer } from "./steering.ts";
import { StickyClients } from "./sticky.ts";

/** A connection that nobody uses is closed after so long: sooner than the first process closes it. Milliseconds. */
const IDLE_MS = 4000;

const nowhere = (): boolean => false;

export interface RequestForwarderDeps {
  /** Of this process, among `count`. */
  readonly number: number;
  readonly count: number;
  /** Where this process takes what others hand over. */
  readonly door: Door;
  readonly pass: PassConnection;
  /** The apps of this process may be others now. */
  mounted?(): void;
}

/** Of a process, as the supervisor has started it. */
export function requestForwarderOf({ begin, link }: MemberDeps, door: Door, mounted?: () => void): RequestForwarder {
  const { number, count, shared, doors } = begin;
  const pass: PassConnection = (socket, head, to) => link.pass(socket, head, to);
  const forwarder = new RequestForwarder({ number, count, door, pass, ...(mounted === undefined ? {} : { mounted }) });
  if (shared !== undefined) forwarder.use(shared);
  forwarder.reach(doors);
  return forwarder;
}

export class RequestForwarder implements RequestSiblings {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });
  readonly #deps: RequestForwarderDeps;
  readonly #sticky: StickyClients;
  #isShared: (path: string) => boolean = nowhere;
  #doors: ReadonlyMap<number, KnownDoor> = new Map();
  /** Processes that are to answer requests, where that is another than this one. */
  readonly #places = new WeakMap<NodeRequest, number>();
  /** Resolves with the next process that serves. */
  #next = Promise.withResolvers<void>();
  readonly #handed: HandedRequestDeps = {
    open: (request) => this.#open(request, false),
    next: () => this.#next.promise,
  };

  constructor(deps: RequestForwarderDeps) {
    this.#deps = deps;
    this.#sticky = new StickyClients(deps.number, deps.count);
  }

  /** From now on. */
  use(shared: Shared): void {
    if (this.#deps.number !== 1) this.#isShared = sharedPaths(shared);
    this.#sticky.use(shared.sticky);
  }

  /** The processes that there are now. */
  reach(doors: readonly KnownDoor[]): void {
    this.#doors = new Map(doors.map((door) => [door.number, door]));
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  close(): void {
    this.#agent.destroy();
  }

  get #isAsked(): boolean {
    return this.#sticky.isAsked || this.#isShared !== nowhere;
  }

  begins(socket: Socket, serve: () => void, patience: number, proxies: TrustedProxies): void {
    if (!this.#isAsked || this.#deps.door.isInner({ socket })) {
      serve();
      return;
    }
    const placeOf = (path: string) => {
      if (this.#isShared(path)) return 1;
      return this.#other(this.#sticky.placeOfConnection(path, socket, proxies));
    };
    steer(socket, serve, patience, { placeOf, pass: this.#deps.pass });
  }

  arrived(request: IncomingMessage): void {
    this.#deps.door.arrived(request);
  }

  mounted(): void {
    this.#deps.mounted?.();
  }

  takes(request: NodeRequest, proxies: TrustedProxies): boolean {
    if (!this.#isAsked || this.#deps.door.isInner(request)) return false;
    const path = requestPath(request.url ?? "");
    if (path === undefined) return false;
    if (this.#isShared(path)) return true;
    if (!this.#sticky.isAsked) return false;
    const place = this.#other(this.#sticky.placeOf(path, request, proxies));
    if (place !== undefined) this.#places.set(request, place);
    return place !== undefined;
  }

  stays(request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void {
    const path = this.#sticky.hasCookies ? requestPath(request.url ?? "") : undefined;
    if (path !== undefined) this.#sticky.welcome(path, request, response, proxies);
  }

  /** What a process that does not serve would answer, this one does: what it kept of its clients has gone with it. */
  #other(place: number | undefined): number | undefined {
    if (place === undefined || place === this.#deps.number) return undefined;
    return this.#doors.get(place)?.isOpen === true ? place : undefined;
  }

  serve(request: NodeRequest, response: NodeResponse, isLast: boolean): void {
    new HandedRequest(request, response, isLast, this.#handed).open();
  }

  serveUpgrade(request: IncomingMessage, handover: Handover): void {
    const outgoing = this.#open(request, true);
    const { response } = handover;
    outgoing.on("error", () => refuseLater(response));
    outgoing.once("response", (answer) => answerWith(answer, response, true));
    outgoing.once("upgrade", ({ rawHeaders }, inner, rest) => {
      const { socket, head } = handover.take();
      handover.detach();
      socket.write(switchingHead(rawHeaders));
      if (rest.length > 0) socket.write(rest);
      if (head.length > 0) (inner as Socket).write(head);
      joinSockets(socket, inner as Socket);
    });
    response.once("close", () => outgoing.destroy());
    outgoing.end();
  }

  #open(request: NodeRequest, isUpgrade: boolean): ClientRequest {
    const { socket = "", token = "" } = this.#doors.get(this.#places.get(request) ?? 1) ?? {};
    const isOld = request.httpVersion === "1.0";
    const headers: string[] = [PEER_FIELD, inAscii({ token, peer: peerOf(request.socket), isOld } as never)];
    const { rawHeaders } = request;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] as string;
      const lower = name.toLowerCase();
      if (lower.startsWith(":") || lower === PEER_FIELD) continue;
      if (connectionFields.has(lower) && (lower !== "expect" || isUpgrade)) continue;
      headers.push(name, rawHeaders[at + 1] as string);
    }
    const { authority } = request as Http2ServerRequest;
    if (authority !== undefined && request.headers.host === undefined) headers.push("Host", authority);
    if (hasOpenBody(request)) headers.push("Transfer-Encoding", "chunked");
    if (isUpgrade) headers.push("Connection", "Upgrade", "Upgrade", request.headers.upgrade ?? "websocket");
    return openRequest({
      socketPath: socket,
      agent: isUpgrade ? false : this.#agent,
      method: request.method,
      path: request.url,
      headers: headers as never,
      setHost: false,
    });
  }
}
