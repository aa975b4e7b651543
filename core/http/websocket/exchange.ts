import { createRequire } from "node:module";
import type { Socket } from "node:net";
import type { ServerOptions, WebSocket } from "ws";
import type { WebSocketAccept, WebSocketEvent, WebSocketTunnel } from "../../types.ts";
import { bindListeners } from "../../util/bound_listeners.ts";
import { HttpError, ModhostError, readableThrown } from "../../util/errors.ts";
import { wireFields } from "../../util/header_fields.ts";
import { type Handover, readHandshake } from "../connection/upgrade.ts";
import { Exchange } from "../lifecycle/exchange.ts";
import { isThenable } from "../message/handler_result.ts";
import { bytesTaken } from "../patches/node/bytes_taken.ts";
import { mayConnect } from "../policy/origins.ts";
import type { Mount, Route } from "../routing/route.ts";
import type { Resolution } from "../routing/routes.ts";
import { Connection } from "./connection.ts";
import { usableOffers } from "./offers.ts";

const moduleLeft = "its module has left";
const gone = () => new ModhostError("WEBSOCKET_CLOSED", { reason: "the client has left" });

/** The library is loaded with the first websocket, because most servers have none. */
const library = (): typeof import("ws") => createRequire(import.meta.url)("ws");

/** Messages shorter than this are not compressed. */
const MIN_COMPRESSED_BYTES = 1024;

/** Close code of a websocket whose token was revoked, has expired or is over its quota. */
const POLICY_VIOLATION = 1008;

/**
 * A websocket handshake. A handler may refuse it with an ordinary response. Once a handler accepts,
 * the exchange lasts as long as the connection.
 */
export class WebSocketExchange extends Exchange implements WebSocketEvent {
  protocols: readonly string[] = [];
  readonly #handover: Handover;
  #connection: Connection | undefined;
  #tunnel: Socket | undefined;
  /** Bytes of the connection before the websocket was opened. */
  #before = { read: 0, written: 0 };

  constructor(handover: Handover, ...facts: ConstructorParameters<typeof Exchange>) {
    super(...facts);
    this.#handover = handover;
  }

  override begin(resolution: Resolution): void {
    const handshake = readHandshake(this.request);
    if ("status" in handshake) {
      Object.assign(this.response.headers, handshake.headers);
      this.refuse(handshake.status, handshake.message);
      return;
    }
    this.protocols = handshake;
    // CORS does not apply to websockets; origins are checked before one opens.
    super.begin({ ...resolution, cors: undefined });
  }

  protected override get switched(): boolean {
    return this.#connection !== undefined || this.#tunnel !== undefined;
  }

  /**
   * @throws {ModhostError} WEBSOCKET_INVALID, WEBSOCKET_CLOSED when the websocket cannot be
   * accepted
   */
  #assertOpen(): Mount {
    const { request, response, mount } = this;
    const invalid = (reason: string) => new ModhostError("WEBSOCKET_INVALID", { id: request.id, reason });
    if (this.switched) throw invalid("it was accepted before");
    if (this.gone) throw gone();
    if (response.responded || mount === undefined) throw invalid("it has a response already");
    return mount;
  }

  accept({ protocol }: WebSocketAccept = {}): Connection {
    const { request, response, service } = this;
    const mount = this.#assertOpen();
    if (protocol !== undefined && !this.protocols.includes(protocol)) {
      const reason = `the client did not offer the protocol ${protocol}: choose one of event.protocols`;
      throw new ModhostError("WEBSOCKET_INVALID", { id: request.id, reason });
    }
    const { websocket: settings = {} } = mount.provider;
    const { websocket: defaults } = service.settings;
    // Headers that middleware has set are sent with the 101.
    response.sink = undefined;
    response.reclaim();
    const limits = { ...defaults, maxMessage: settings.max_message_bytes ?? defaults.maxMessage };
    const chosen = protocol ?? settings.protocols?.find((name) => this.protocols.includes(name));
    const { ws, socket } = this.#switch({
      maxPayload: limits.maxMessage,
      perMessageDeflate: settings.compression === true && { threshold: MIN_COMPRESSED_BYTES },
      handleProtocols: () => chosen ?? false,
      closeTimeout: limits.closeTimeout * 1000,
    });
    response.responded = true;
    this.#before = { read: socket.bytesRead, written: socket.bytesWritten };
    response.status_code = 101;
    const connection = new Connection(ws, socket, limits, service.watch);
    this.#connection = connection;
    this.settled?.();
    this.announce(101, true);
    const forget = mount.owner.on_release("websocket", () => connection.cut(moduleLeft), "websocket");
    void connection.closed.then(() => {
      forget();
      this.over();
    });
    // The module of the app may have begun to unload before the handler accepted the websocket.
    if (mount.retired) this.retire();
    return connection;
  }

  tunnel(): WebSocketTunnel {
    this.#assertOpen();
    const { response, service } = this;
    const taken = this.#handover.take();
    const { socket } = taken;
    this.#handover.detach();
    response.sink = undefined;
    response.reclaim();
    response.responded = true;
    response.status_code = 101;
    this.#tunnel = socket;
    this.#before = { read: socket.bytesRead, written: socket.bytesWritten };
    this.settled?.();
    this.announce(101, true);
    bindListeners(socket);
    // Nothing is read from the other side while the client does not read, not even that it has
    // ended: only the client can end such a connection otherwise.
    const watched = service.watch.add({
      moved: () => bytesTaken(socket) ?? socket.bytesWritten,
      waiting: () => socket.writableLength > 0,
      expired: () => socket.destroy(),
    });
    socket
      .on("error", () => undefined)
      .once("close", () => {
        service.watch.delete(watched);
        this.over();
      });
    return taken;
  }

  /** Ends the connection for an error after `accept`, when no error page can be sent. */
  override fail(...[given, ...more]: Parameters<Exchange["fail"]>): void {
    const thrown = readableThrown(given);
    const connection = this.#connection;
    if (!this.switched) {
      super.fail(thrown, ...more);
      return;
    }
    if (this.#isCausedByEnd(thrown)) return;
    this.report(thrown);
    if (connection === undefined) this.cut();
    else if (connection.open) void connection.close(1011);
  }

  override rejected(...[reason, ...more]: Parameters<Exchange["rejected"]>): void {
    if (this.switched) this.fail(reason);
    else super.rejected(reason, ...more);
  }

  override retire(): void {
    super.retire();
    void this.#connection?.close(this.mount?.closeCode);
  }

  override cut(): void {
    if (this.#tunnel !== undefined) this.#tunnel.destroy();
    else if (this.#connection === undefined) super.cut();
    else this.#connection.cut(moduleLeft);
  }

  override get received(): number {
    return !this.switched ? super.received : this.request.raw.socket.bytesRead - this.#before.read;
  }

  override get sent(): number {
    return !this.switched ? super.sent : this.request.raw.socket.bytesWritten - this.#before.written;
  }

  override revoke(): void {
    if (this.#connection === undefined) super.revoke();
    else void this.#connection.close(POLICY_VIOLATION, "the token is no longer valid");
  }

  protected override callHandler(route: Route, argument: string | undefined): unknown {
    const authority = this.request.url.host ?? this.request.header("host");
    if (!mayConnect(route.mount.origins, this.request, authority)) {
      throw new HttpError(403, "Pages of this origin may not open websockets here");
    }
    const value = super.callHandler(route, argument);
    const settle = () => this.#connection?.settle();
    if (isThenable(value)) return Promise.resolve(value).finally(settle);
    settle();
    return value;
  }

  /** Sends the 101. */
  #switch(options: ServerOptions & { readonly closeTimeout: number }): { ws: WebSocket; socket: Socket } {
    const fields = wireFields(this.response.headers, true);
    const server = new (library().WebSocketServer)({ ...options, noServer: true, clientTracking: false });
    let ws: WebSocket | undefined;
    let fault: Error | undefined;
    server.on("wsClientError", (error) => {
      fault = error;
    });
    server.on("headers", (lines) => {
      for (let at = 0; at < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}`);
    });
    const { socket, head } = this.#handover.take();
    const { headers } = this.#handover.request;
    const offers = headers["sec-websocket-extensions"];
    // The library refuses the whole handshake for an offer that it does not know.
    if (offers !== undefined) headers["sec-websocket-extensions"] = usableOffers(offers);
    // The library writes the head as a text, but each character of a header must be one byte.
    socket.setDefaultEncoding("latin1");
    server.handleUpgrade(this.#handover.request, socket, head, (opened) => {
      ws = opened;
    });
    socket.setDefaultEncoding("utf8");
    if (fault !== undefined) throw new HttpError(400, fault.message);
    if (ws === undefined) {
      this.over();
      throw gone();
    }
    this.#handover.detach();
    return { ws, socket };
  }

  /**
   * Whether an error only reports that the connection has ended or its module is leaving: by a
   * failed send, or by a signal.
   */
  #isCausedByEnd(thrown: unknown): boolean {
    if (ModhostError.is(thrown)) return thrown.code === "WEBSOCKET_CLOSED";
    const { signal, leaving } = this.request;
    return thrown instanceof Error && thrown.name === "AbortError" && (signal.aborted || leaving.aborted);
  }
}
