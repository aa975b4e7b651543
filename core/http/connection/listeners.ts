import type { Server } from "node:http";
import type { Http2SecureServer, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import * as tlsModule from "node:tls";
import { isHttp2, MAX_HTTP2_HEAD, NO_ERROR } from "../../util/http2.ts";
import { createServer, type IncomingMessage, type ServerResponse } from "../../util/node_http.ts";
import type { NodeRequest, NodeResponse } from "../../util/node_messages.ts";
import { connectionBelow } from "../patches/node/bytes_taken.ts";
import { closeIdleConnections, serveHalfClosed, takeConnection, watchHeads } from "../patches/node/connections.ts";
import { currentResponses } from "../patches/node/current_response.ts";
import { takeOverReading } from "../patches/node/reading.ts";
import type { HttpEnvironment, HttpSettings } from "../settings.ts";
import { LastRequests } from "./last_requests.ts";
import { endSlowly, endsSlowly, isEnding, probesHalfClosed } from "./lingering.ts";
import { afterReading, cutWhenLost } from "./lost_sessions.ts";
import { PipelinedRequests } from "./pipelined_requests.ts";
import { StreamScheduler } from "./stream_scheduler.ts";
import { openTunnel } from "./tunnel.ts";
import { unparsedMessages } from "./unparsed_messages.ts";
import { Handover } from "./upgrade.ts";
import { WireResponse } from "./wire_response.ts";

export type TlsSource = TlsOptions & { SNICallback: NonNullable<TlsOptions["SNICallback"]> };

/** Receives the requests that arrive. */
export interface Receiver {
  serve(request: NodeRequest, response: NodeResponse): void;
  /** Serves a request whose client waits for `100 Continue`. */
  serveExpecting(request: NodeRequest, response: NodeResponse): void;
  /**
   * Returns true for a websocket: the connection is then released after this request. Otherwise the
   * request is served like any other.
   */
  upgrades(request: IncomingMessage): boolean;
  serveUpgrade(request: IncomingMessage, handover: Handover): void;
  /** Whether CONNECT opens a tunnel. */
  tunnels(): boolean;
  /** Responds to a request that could not be parsed. */
  refuse(request: IncomingMessage, response: ServerResponse, status: number, error: Error): void;
  /** Called when a client sends plain HTTP to a TLS port, where no response can be written. */
  lost(socket: Socket): void;
}

/** An untyped function of Node.js that sets the protocols which a TLS server offers. */
const { convertALPNProtocols } = tlsModule as unknown as {
  convertALPNProtocols(protocols: readonly string[], server: object): void;
};

/**
 * The stream id in a GOAWAY that announces the end but still allows new streams (RFC 9113, 6.8).
 */
const LAST_STREAM = 2 ** 31 - 1;

/** Connections accepted so far, and requests that could not be parsed. */
interface ListenerCounts {
  plain: number;
  secure: number;
  malformed: number;
}

/**
 * Node's HTTP servers. They open no ports: other code accepts the connections. Malformed requests
 * get an error page.
 */
export class Listeners {
  readonly #environment: HttpEnvironment;
  readonly #plain: Server;
  /** Undefined: nothing is served over TLS. */
  #tls: TlsSource | undefined;
  /** One server with HTTP/2 (key true) and one without, each created for its first connection. */
  readonly #secures = new Map<boolean, Http2SecureServer>();
  readonly #makeSecure: (tls: TlsSource, http2: boolean) => Http2SecureServer;
  readonly #sockets = new Set<Socket>();
  /** Connections on which something malformed arrived. */
  readonly #refused = new WeakSet<Socket>();
  readonly #responses = currentResponses();
  readonly #pipelined = new PipelinedRequests(this.#responses);
  readonly #last = new LastRequests(this.#sockets, (socket) => this.#responses.of(socket));
  readonly #streams = new StreamScheduler();
  /**
   * Connections whose request head is late, although bytes of it arrived while this process was
   * busy.
   */
  readonly #late = new Map<Socket, NodeJS.Timeout>();
  readonly #settings: Pick<HttpSettings, "headTimeout" | "idleTimeout" | "http2" | "http1Ports">;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #receiver: Receiver;
  #onEmpty: (() => void)[] = [];
  readonly counts: ListenerCounts;

  /** `counts`: the counters of the previous listeners, which these continue. */
  constructor(
    settings: HttpSettings,
    environment: HttpEnvironment,
    tls: TlsSource | undefined,
    receiver: Receiver,
    counts: ListenerCounts = { plain: 0, secure: 0, malformed: 0 },
  ) {
    this.counts = counts;
    this.#receiver = receiver;
    this.#environment = environment;
    this.#settings = settings;
    const limits = {
      maxHeaderSize: settings.maxHeaderSize,
      headersTimeout: milliseconds(settings.headTimeout),
      keepAliveTimeout: milliseconds(settings.idleTimeout),
      // The host measures progress instead: an upload may take any time as long as it moves.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.max(50, Math.min(5000, milliseconds(settings.headTimeout / 4))),
      // The host refuses such requests itself, with its error page.
      requireHostHeader: false,
      // A connection can be released only when the responses to all earlier requests are complete.
      shouldUpgradeCallback: (request: IncomingMessage) =>
        this.#responses.of(request.socket) === undefined && receiver.upgrades(request),
    };
    this.#plain = createServer({ ...limits, ServerResponse: WireResponse });
    this.#plain.on("connection", endsSlowly).on("connection", probesHalfClosed);
    this.#attach(this.#plain, receiver);
    this.#tls = tls;
    this.#makeSecure = (options, http2) => {
      // Loading this module takes time and memory, so the first TLS connection loads it.
      const { createSecureServer } = process.getBuiltinModule("node:http2");
      const largest = Math.min(settings.maxHeaderSize, MAX_HTTP2_HEAD);
      const secure = createSecureServer({
        ...options,
        ...limits,
        Http1ServerResponse: WireResponse,
        allowHTTP1: true,
        minVersion: "TLSv1.2",
        handshakeTimeout: milliseconds(settings.headTimeout),
        settings: { maxConcurrentStreams: settings.maxStreams, maxHeaderListSize: largest },
        // A client that opens and resets more streams than this loses its session (rapid reset).
        // They may come in one piece, in which each takes a twentieth of a millisecond.
        streamResetBurst: 300,
        streamResetRate: 100,
        maxSessionInvalidFrames: 100,
        maxSessionRejectedStreams: 100,
        // HTTP/1.1 sends repeated lines of ETag or Location. HTTP/2 must not fail the whole
        // response because of them.
        strictSingleValueFields: false,
      } as Parameters<typeof createSecureServer>[0]);
      // Node's HTTP/2 server ignores the option and sets its own callback.
      Object.assign(secure, { shouldUpgradeCallback: limits.shouldUpgradeCallback });
      // It also ignores ALPNProtocols. Without HTTP/2 it treats every client as one that speaks
      // only HTTP/1.1.
      if (!http2) convertALPNProtocols(["http/1.1"], secure);
      secure.on("secureConnection", (socket) => {
        endsSlowly(socket);
        this.#last.decrypted(socket);
        // Streams of HTTP/2 end by themselves. A connection whose client has ended its side has
        // none left.
        if (socket.alpnProtocol === "h2") socket.allowHalfOpen = false;
        else probesHalfClosed(socket);
      });
      this.#attach(secure, receiver);
      secure.on("session", (session) => this.#join(session, settings.idleTimeout));
      secure.on("sessionError", () => undefined);
      secure.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
        if (error.code !== "ERR_SSL_HTTP_REQUEST") return;
        this.counts.malformed += 1;
        receiver.lost(connectionBelow(socket) ?? socket);
      });
      return secure;
    };
  }

  /**
   * Sets the certificates for new connections of clients that name no host. Returns false when TLS
   * is not served.
   */
  secure(tls: TlsSource): boolean {
    if (this.#tls === undefined) return false;
    this.#tls = tls;
    for (const secure of this.#secures.values()) secure.setSecureContext(tls);
    return true;
  }

  /** Serves an HTTP/1 connection. */
  connect(socket: Socket): void {
    this.counts.plain += 1;
    this.#track(socket);
    takeConnection(this.#plain, socket);
  }

  /** Serves a connection that begins with a TLS handshake and continues with HTTP/2 or HTTP/1. */
  connectSecure(socket: Socket): void {
    this.counts.secure += 1;
    this.#track(socket);
    this.#last.encrypted(socket);
    // Node remembers the address after the close only if it was read before.
    void socket.remoteAddress;
    const serve = () => {
      if (this.#tls === undefined) return;
      const { http2, http1Ports } = this.#settings;
      const speaks = http2 !== false && http1Ports?.includes(socket.localPort ?? 0) !== true;
      const secure = this.#secures.get(speaks) ?? this.#makeSecure(this.#tls, speaks);
      this.#secures.set(speaks, secure);
      secure.emit("connection", socket);
    };
    const environment = this.#environment;
    const isTaken =
      environment.hasHooks("tls-connection") && environment.fire("tls-connection", { socket, serve }, "*") === true;
    if (!isTaken) serve();
  }

  /** Adds the counters of listeners that are gone. */
  inherit({ counts: { plain, secure, malformed } }: Listeners): void {
    this.counts.plain += plain;
    this.counts.secure += secure;
    this.counts.malformed += malformed;
  }

  /**
   * Asks clients to move to new connections. HTTP/2 sessions get a GOAWAY that still allows new
   * requests. An HTTP/1 connection is closed with its next response.
   */
  leave(): void {
    for (const session of this.#sessions) if (!session.destroyed) session.goaway(NO_ERROR, LAST_STREAM);
  }

  /**
   * Closes connections that wait for a further request now, and the others after their current
   * response. New connections stay open, because their first request may be on its way. HTTP/2
   * sessions end when their last request is complete.
   */
  closeIdle(): void {
    for (const session of this.#sessions) session.close();
    const unused = this.#last.unused();
    for (const server of [this.#plain, ...this.#secures.values()]) closeIdleConnections(server as Server, unused);
  }

  /** Number of open connections. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Calls back once, when no connection is open. */
  whenEmpty(callback: () => void): void {
    if (this.#sockets.size === 0) callback();
    else this.#onEmpty.push(callback);
  }

  /**
   * Resolves when the last connection is closed. After `grace` seconds it calls `destroying` and
   * destroys the connections that are still open.
   */
  async close(grace: number, destroying: () => void = () => undefined): Promise<void> {
    this.closeIdle();
    this.#last.close();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, grace * 1000);
      this.whenEmpty(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    if (this.#sockets.size > 0) destroying();
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
    this.#plain.close();
    for (const secure of this.#secures.values()) secure.close();
  }

  #attach(server: Server | Http2SecureServer, receiver: Receiver): void {
    const plain = server as Server;
    const responses = this.#responses;
    if (responses.begin !== undefined) {
      const begin = ({ socket }: IncomingMessage, response: ServerResponse) => responses.begin?.(socket, response);
      plain.on("request", begin).on("checkContinue", begin);
    }
    const queueOf = (request: NodeRequest) => (isHttp2(request) ? this.#streams : this.#pipelined);
    const serve = (request: IncomingMessage, response: ServerResponse) => receiver.serve(request, response);
    const serveExpecting = (request: IncomingMessage, response: ServerResponse) =>
      receiver.serveExpecting(request, response);
    plain.on("request", (request, response) => {
      if (this.#late.size > 0) this.#clearLate(request.socket);
      queueOf(request).take(request, response, serve);
    });
    plain.on("checkContinue", (request, response) => queueOf(request).take(request, response, serveExpecting));
    plain.on("timeout", (socket) => this.#idle(socket));
    plain.on("connect", (request, out, head) => {
      if (isHttp2(request)) receiver.serve(request, out as never);
      else this.#connect(request, out as Socket, head);
    });
    plain.on("upgrade", (request, socket, head) =>
      receiver.serveUpgrade(request, new Handover(request, socket as Socket, head)),
    );
    plain.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => this.#malformed(error, socket));
    watchHeads(plain);
    serveHalfClosed(plain);
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#clearLate(socket);
      if (this.#sockets.size > 0) return;
      for (const callback of this.#onEmpty.splice(0)) callback();
    });
    socket.on("error", () => undefined);
  }

  #join(session: ServerHttp2Session, idleTimeout: number): void {
    this.#sessions.add(session);
    session.once("close", () => this.#sessions.delete(session));
    session.on("error", () => undefined);
    const below = connectionBelow(session.socket);
    if (below !== undefined) cutWhenLost(session, below, milliseconds(idleTimeout));
    session.setTimeout(idleTimeout * 1000, () => {
      // A destroyed session has no socket to read the counter from.
      void afterReading(
        () => (session.destroyed ? Number.NaN : session.socket.bytesRead),
        () => session.close(),
      );
    });
  }

  /** Closes a connection without a request on which no bytes moved for the idle time. */
  #idle(socket: Socket): void {
    if (this.#responses.of(socket) !== undefined) return;
    void afterReading(bytesOf(socket), () => {
      if (this.#responses.of(socket) === undefined) socket.destroy();
    });
  }

  /** Handles a request head that did not arrive in time. */
  #overdue(error: NodeJS.ErrnoException, socket: Socket): void {
    const { headTimeout, idleTimeout } = this.#settings;
    if (socket.bytesRead === 0) {
      // No request has begun: clients open connections that they may need later.
      socket.setTimeout(Math.max(1, (idleTimeout - headTimeout) * 1000));
      return;
    }
    if (this.#pipelined.waiting(socket) > 0) {
      // The rest of the head is not read until the pipelined requests before it have begun.
      const checkAgain = () => {
        if (this.#late.delete(socket)) this.#overdue(error, socket);
      };
      this.#late.set(socket, setTimeout(checkAgain, headTimeout * 1000).unref());
      return;
    }
    const isRead = afterReading(bytesOf(socket), () => this.#refuseOnce(error, socket));
    void isRead.then((hasMore) => {
      if (!hasMore || socket.destroyed) return;
      const refuse = () => {
        if (this.#late.delete(socket)) this.#refuseOnce(error, socket);
      };
      this.#late.set(socket, setTimeout(refuse, headTimeout * 1000).unref());
    });
  }

  #clearLate(socket: Socket): void {
    clearTimeout(this.#late.get(socket));
    this.#late.delete(socket);
  }

  /**
   * Responds to malformed input once and closes the connection. The parser reports an error for
   * every further chunk.
   */
  #malformed(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") this.#overdue(error, socket);
    else this.#refuseOnce(error, socket);
  }

  #refuseOnce(error: NodeJS.ErrnoException, socket: Socket): void {
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    this.counts.malformed += 1;
    this.#refuse(error, socket);
  }

  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    if (isEnding(socket)) return;
    const status = malformedStatus(error.code);
    if (status === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    const inFlight = this.#responses.of(socket);
    if (inFlight?.req.complete === true) {
      // The previous request was complete, so its response is sent first.
      inFlight.once("close", () => this.#refuse(error, socket));
      return;
    }
    if (inFlight?.headersSent === true) {
      // A response that has begun, such as a 501, is still sent. An HTTP/1.0 connection is
      // destroyed instead, because its client would take a cut response for the whole.
      return void (inFlight.req.httpVersion === "1.0" ? socket.destroy() : endSlowly(socket));
    }
    this.#respondMalformed(status, error, socket);
  }

  #respondMalformed(status: number, error: Error, socket: Socket): void {
    // Bytes that arrive from here on do not begin a request.
    takeOverReading(socket, () => undefined);
    socket.pause();
    // The current request is over, although the connection is still open.
    const current = this.#responses.of(socket);
    current?.detachSocket(socket);
    current?.emit("close");
    const { request, response } = unparsedMessages(socket);
    response.assignSocket(socket);
    response.once("finish", () => {
      endSlowly(socket);
      response.detachSocket(socket);
      response.emit("close");
    });
    this.#receiver.refuse(request, response, status, error);
  }

  /**
   * Handles a CONNECT once all earlier responses are complete: only then can its own response be
   * written.
   */
  #connect(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const current = this.#responses.of(socket);
    if (socket.destroyed) return;
    if (current !== undefined) current.once("close", () => this.#connect(request, socket, head));
    else if (!this.#receiver.tunnels()) this.#receiver.serve(request, new Handover(request, socket, head).response);
    else openTunnel(this.#plain, socket, head);
  }
}

/** Node accepts only whole milliseconds. */
const milliseconds = (seconds: number) => Math.ceil(seconds * 1000);
const bytesOf = (socket: Socket) => () => socket.bytesRead;

/** The status for malformed input; undefined when the client cannot receive a response. */
function malformedStatus(code: string | undefined): number | undefined {
  if (code === "HPE_HEADER_OVERFLOW") return 431;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  return code?.startsWith("HPE_") === true ? 400 : undefined;
}
