import type { Server } from "node:http";
import type { Http2SecureServer, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import type { HttpErrorEvent, ResponseHeaders } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { wireFields } from "../util/header_fields.ts";
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "../util/node_http.ts";
import { errorPage } from "./error_page.ts";
import { plainPage } from "./failure.ts";
import { isHttp2, NO_ERROR } from "./http2.ts";
import { endSlowly, endsSlowly, isEnding } from "./lingering.ts";
import { afterReading, cutWhenLost } from "./lost_sessions.ts";
import type { NodeRequest, NodeResponse } from "./node_messages.ts";
import { connectionBelow } from "./patches/node/bytes_taken.ts";
import { takeConnection, watchHeads } from "./patches/node/connections.ts";
import { currentAnswers } from "./patches/node/current_answer.ts";
import { letGoOfReading } from "./patches/node/reading.ts";
import type { HttpEnvironment, HttpSettings } from "./settings.ts";
import { StreamTurns } from "./stream_turns.ts";
import { openTunnel } from "./tunnel.ts";
import { Turns } from "./turns.ts";
import { Handover } from "./upgrade.ts";

export type TlsSource = TlsOptions & { SNICallback: NonNullable<TlsOptions["SNICallback"]> };

/** Receives the requests that arrive. */
export interface Receiver {
  serve(request: NodeRequest, response: NodeResponse): void;
  /** The client waits to be asked for the body. */
  serveExpecting(request: NodeRequest, response: NodeResponse): void;
  /** True to take the connection over after this request, for a websocket; otherwise it is served like any other. */
  upgrades(request: IncomingMessage): boolean;
  serveUpgrade(request: IncomingMessage, handover: Handover): void;
  /** Is CONNECT answered? */
  tunnels(): boolean;
}

/** As a server says that it is to end, and does not yet (RFC 9113, 6.8). */
const LAST_STREAM = 2 ** 31 - 1;

/** Connections taken over so far, and requests refused since they could not be parsed. */
interface ListenerCounts {
  plain: number;
  secure: number;
  malformed: number;
}

/** Node's HTTP servers. They open no ports: connections are handed to them. Malformed requests get an error page. */
export class Listeners {
  readonly #environment: HttpEnvironment;
  readonly #plain: Server;
  /** Undefined: nothing is served over TLS. */
  #tls: TlsSource | undefined;
  /** Made with the first connection that it is for. */
  #secure: Http2SecureServer | undefined;
  readonly #makeSecure: (tls: TlsSource) => Http2SecureServer;
  readonly #sockets = new Set<Socket>();
  /** Connections on which something malformed arrived. */
  readonly #refused = new WeakSet<Socket>();
  readonly #answers = currentAnswers();
  readonly #turns = new Turns(this.#answers);
  readonly #streamTurns = new StreamTurns();
  /** Connections whose request head is late, though something of it came while this process was busy. */
  readonly #late = new Map<Socket, NodeJS.Timeout>();
  readonly #settings: Pick<HttpSettings, "headTimeout" | "idleTimeout">;
  readonly #sessions = new Set<ServerHttp2Session>();
  #onEmpty: (() => void)[] = [];
  readonly counts: ListenerCounts;

  /** `counts`: those of the listeners before these, which go on. */
  constructor(
    settings: HttpSettings,
    environment: HttpEnvironment,
    tls: TlsSource | undefined,
    receiver: Receiver,
    counts: ListenerCounts = { plain: 0, secure: 0, malformed: 0 },
  ) {
    this.counts = counts;
    this.#environment = environment;
    this.#settings = settings;
    const limits = {
      maxHeaderSize: settings.maxHeaderSize,
      headersTimeout: milliseconds(settings.headTimeout),
      keepAliveTimeout: milliseconds(settings.idleTimeout),
      // Progress is measured instead: an upload may take as long as it moves.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.max(50, Math.min(5000, milliseconds(settings.headTimeout / 4))),
      // The host answers these itself, with its error page.
      requireHostHeader: false,
      // A connection can be handed over when all requests before this one have been answered.
      shouldUpgradeCallback: (request: IncomingMessage) =>
        this.#answers.of(request.socket) === undefined && receiver.upgrades(request),
    };
    this.#plain = createServer(limits);
    this.#plain.on("connection", endsSlowly);
    this.#plain.on("connect", (_request, socket, head) => {
      // Behind a request that is still being answered, there is no place for the answer.
      const isFree = this.#answers.of(socket as Socket) === undefined;
      if (isFree && receiver.tunnels()) openTunnel(this.#plain, socket as Socket, head);
      else socket.destroy();
    });
    this.#attach(this.#plain, receiver);
    this.#tls = tls;
    this.#makeSecure = (options) => {
      // Node's module is loaded with the first connection: it is a part of a start, and of its memory.
      const { createSecureServer } = process.getBuiltinModule("node:http2");
      const secure = createSecureServer({
        ...options,
        ...limits,
        allowHTTP1: true,
        minVersion: "TLSv1.2",
        handshakeTimeout: milliseconds(settings.headTimeout),
        settings: { maxConcurrentStreams: settings.maxStreams, maxHeaderListSize: settings.maxHeaderSize },
        // A client that opens and resets more streams than this loses its session (rapid reset). They may come in one
        // piece, in which each takes a twentieth of a millisecond.
        streamResetBurst: 300,
        streamResetRate: 100,
        maxSessionInvalidFrames: 100,
        maxSessionRejectedStreams: 100,
      } as Parameters<typeof createSecureServer>[0]);
      // Node's HTTP/2 server ignores the option and sets its own callback.
      Object.assign(secure, { shouldUpgradeCallback: limits.shouldUpgradeCallback });
      secure.on("secureConnection", endsSlowly);
      this.#attach(secure, receiver);
      secure.on("session", (session) => this.#join(session, settings.idleTimeout));
      secure.on("sessionError", () => undefined);
      return secure;
    };
  }

  /** Other certificates for new connections of clients that name no host. False where nothing is served over TLS. */
  secure(tls: TlsSource): boolean {
    if (this.#tls === undefined) return false;
    this.#tls = tls;
    this.#secure?.setSecureContext(tls);
    return true;
  }

  /** Takes over a connection that speaks HTTP/1. */
  connect(socket: Socket): void {
    this.counts.plain += 1;
    this.#track(socket);
    takeConnection(this.#plain, socket);
  }

  /** Takes over a connection that begins with a TLS handshake and goes on with HTTP/2 or HTTP/1. */
  connectSecure(socket: Socket): void {
    this.counts.secure += 1;
    this.#track(socket);
    const serve = () => {
      if (this.#tls === undefined) return;
      this.#secure ??= this.#makeSecure(this.#tls);
      this.#secure.emit("connection", socket);
    };
    const environment = this.#environment;
    const isTaken =
      environment.hasHooks("tls-connection") && environment.fire("tls-connection", { socket, serve }, "*") === true;
    if (!isTaken) serve();
  }

  /** What listeners counted that are gone now goes on here. */
  inherit({ counts: { plain, secure, malformed } }: Listeners): void {
    this.counts.plain += plain;
    this.counts.secure += secure;
    this.counts.malformed += malformed;
  }

  /**
   * Asks clients to go on by other connections: of HTTP/2 those that are there, by a GOAWAY that still lets them ask. Of
   * HTTP/1 each is closed with its next answer.
   */
  leave(): void {
    for (const session of this.#sessions) if (!session.destroyed) session.goaway(NO_ERROR, LAST_STREAM);
  }

  /** Closes connections without a request; HTTP/2 ones end when their last request is answered. */
  closeIdle(): void {
    for (const session of this.#sessions) session.close();
    this.#plain.closeIdleConnections();
    (this.#secure as unknown as Server | undefined)?.closeIdleConnections?.();
  }

  /** Connections that are open. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Calls back once, when there is no connection (any more). */
  whenEmpty(callback: () => void): void {
    if (this.#sockets.size === 0) callback();
    else this.#onEmpty.push(callback);
  }

  /** Resolves when the last connection is closed; those still open after `grace` seconds are destroyed, once told of. */
  async close(grace: number, destroying: () => void = () => undefined): Promise<void> {
    this.closeIdle();
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
    this.#secure?.close();
  }

  #attach(server: Server | Http2SecureServer, receiver: Receiver): void {
    const plain = server as Server;
    const answers = this.#answers;
    if (answers.begin !== undefined) {
      const begin = ({ socket }: IncomingMessage, response: ServerResponse) => answers.begin?.(socket, response);
      plain.on("request", begin).on("checkContinue", begin);
    }
    const turnsOf = (request: NodeRequest) => (isHttp2(request) ? this.#streamTurns : this.#turns);
    const serve = (request: IncomingMessage, response: ServerResponse) => receiver.serve(request, response);
    const ask = (request: IncomingMessage, response: ServerResponse) => receiver.serveExpecting(request, response);
    plain.on("request", (request, response) => {
      if (this.#late.size > 0) this.#forgive(request.socket);
      turnsOf(request).take(request, response, serve);
    });
    plain.on("checkContinue", (request, response) => turnsOf(request).take(request, response, ask));
    plain.on("timeout", (socket) => this.#idle(socket));
    plain.on("upgrade", (request, socket, head) =>
      receiver.serveUpgrade(request, new Handover(request, socket as Socket, head)),
    );
    plain.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => this.#malformed(error, socket));
    watchHeads(plain);
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#forgive(socket);
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
      // The socket of a session that is gone cannot be asked.
      void afterReading(
        () => (session.destroyed ? Number.NaN : session.socket.bytesRead),
        () => session.close(),
      );
    });
  }

  /** Nothing has moved on a connection that has no request for as long as it may be idle. */
  #idle(socket: Socket): void {
    if (this.#answers.of(socket) !== undefined) return;
    void afterReading(bytesOf(socket), () => {
      if (this.#answers.of(socket) === undefined) socket.destroy();
    });
  }

  /** The head of a request has not come in its time. */
  #overdue(error: NodeJS.ErrnoException, socket: Socket): void {
    const { headTimeout, idleTimeout } = this.#settings;
    if (socket.bytesRead === 0) {
      // No request has begun: clients open connections that they may need later.
      socket.setTimeout(Math.max(1, (idleTimeout - headTimeout) * 1000));
      return;
    }
    if (this.#turns.waiting(socket) > 0) {
      // Nothing more of it is read until those before it have begun.
      const askAgain = () => {
        if (this.#late.delete(socket)) this.#overdue(error, socket);
      };
      this.#late.set(socket, setTimeout(askAgain, headTimeout * 1000).unref());
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

  #forgive(socket: Socket): void {
    clearTimeout(this.#late.get(socket));
    this.#late.delete(socket);
  }

  /** Answers malformed input once, and closes; the parser reports an error for every further chunk. */
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
    const inFlight = this.#answers.of(socket);
    if (inFlight?.req.complete === true) {
      // The request before was complete: its answer goes out first.
      inFlight.once("close", () => this.#refuse(error, socket));
      return;
    }
    if (inFlight?.headersSent === true) {
      socket.destroy();
      return;
    }
    void this.#tell(status, error, socket);
  }

  async #tell(status: number, error: Error, socket: Socket): Promise<void> {
    // Nothing that comes while the page is made begins a request.
    letGoOfReading(socket, () => undefined);
    socket.pause();
    const response = { status_code: status, headers: {} as ResponseHeaders };
    const event: HttpErrorEvent = { code: status, message: undefined, error, request: undefined, response };
    let body: string | Uint8Array;
    let fields: string[];
    try {
      body = await errorPage(this.#environment, event, "*");
      fields = wireFields(response.headers, false);
    } catch (failure) {
      this.#environment.log.error("The page for a malformed request cannot be sent: %s", reasonOf(failure));
      response.headers = {};
      body = plainPage(response, event);
      fields = wireFields(response.headers, false);
    }
    fields.push("Content-Length", String(Buffer.byteLength(body)), "Connection", "close");
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\n`;
    for (let at = 0; at < fields.length; at += 2) head += `${fields[at]}: ${fields[at + 1]}\r\n`;
    socket.write(`${head}\r\n`);
    socket.write(body);
    endSlowly(socket);
    // The request that this has answered is over, though the connection is not closed yet.
    const answer = this.#answers.of(socket);
    answer?.detachSocket(socket);
    answer?.emit("close");
  }
}

/** Whole ones: Node takes no others. */
const milliseconds = (seconds: number) => Math.ceil(seconds * 1000);

const bytesOf = (socket: Socket) => () => socket.bytesRead;

/** The status that tells a client what was wrong; undefined when there is nobody to tell. */
function malformedStatus(code: string | undefined): number | undefined {
  if (code === "HPE_HEADER_OVERFLOW") return 431;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  return code?.startsWith("HPE_") === true ? 400 : undefined;
}
