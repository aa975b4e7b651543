/** Requests that the first process answers: handed over as they come, over a socket of the system, and answered with what comes back. */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Socket } from "node:net";
import type { NodeRequest, NodeResponse } from "../http/node_messages.ts";
import { connectionFields, joinSockets, switchingHead } from "../http/relay.ts";
import type { RequestSiblings } from "../http/service.ts";
import type { Handover } from "../http/upgrade.ts";
import { Agent, request as openRequest } from "../util/node_http.ts";
import { peerOf } from "../worker/forward.ts";
import { inAscii, PEER_FIELD } from "../worker/messages.ts";
import { answerWith, HandedRequest, type HandedRequestDeps, hasOpenBody, refuseLater } from "./handed_request.ts";
import type { Shared } from "./messages.ts";
import { requestPath, sharedPaths } from "./shared_paths.ts";
import { type PassConnection, steer } from "./steering.ts";

/** A connection that nobody uses is closed after so long: sooner than the first process closes it. Milliseconds. */
const IDLE_MS = 4000;

const nowhere = (): boolean => false;

export class Elsewhere implements RequestSiblings {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });
  #shared: Shared | undefined;
  #isShared: (path: string) => boolean = nowhere;
  /** Resolves with the next first process. */
  #next = Promise.withResolvers<void>();
  readonly #pass: PassConnection;
  readonly #deps: HandedRequestDeps = {
    open: (request) => this.#open(request, false),
    next: () => this.#next.promise,
  };

  constructor(shared: Shared | undefined, pass: PassConnection) {
    this.#pass = pass;
    if (shared !== undefined) this.use(shared);
  }

  /** From now on. */
  use(shared: Shared): void {
    this.#shared = shared;
    this.#isShared = sharedPaths(shared);
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  close(): void {
    this.#agent.destroy();
  }

  begins(socket: Socket, serve: () => void, patience: number): void {
    steer(socket, serve, patience, { isShared: (path) => this.#isShared(path), pass: this.#pass });
  }

  takes({ url = "" }: NodeRequest): boolean {
    const path = requestPath(url);
    return path !== undefined && this.#isShared(path);
  }

  serve(request: NodeRequest, response: NodeResponse, isLast: boolean): void {
    new HandedRequest(request, response, isLast, this.#deps).open();
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
    const { socket = "", token = "" } = this.#shared ?? {};
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
