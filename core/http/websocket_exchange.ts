import { createRequire } from "node:module";
import type { Socket } from "node:net";
import type { ServerOptions, WebSocket } from "ws";
import type { WebSocketAccept, WebSocketEvent, WebSocketTunnel } from "../types.ts";
import { HttpError, ModhostError } from "../util/errors.ts";
import { wireFields } from "../util/header_fields.ts";
import { isThenable } from "./answer.ts";
import { Exchange } from "./exchange.ts";
import { mayConnect } from "./origins.ts";
import type { Mount, Route } from "./route.ts";
import type { Resolution } from "./routes.ts";
import { type Handover, readHandshake } from "./upgrade.ts";
import { Connection } from "./websocket.ts";

const moduleLeft = "its module has left";
const gone = () => new ModhostError("WEBSOCKET_CLOSED", { reason: "the client has left" });

const require = createRequire(import.meta.url);

/** Loaded with the first websocket: most servers have none. */
const library = (): typeof import("ws") => require("ws");

/** Messages shorter than this are not compressed. */
const MIN_COMPRESSED_BYTES = 1024;

/** Close code of a websocket whose token was revoked, has expired or is over its quota. */
const POLICY_VIOLATION = 1008;

/** A websocket handshake. It can be answered like any request; once a handler accepts, it lasts as long as the connection. */
export class WebSocketExchange extends Exchange implements WebSocketEvent {
  protocols: readonly string[] = [];
  readonly #handover: Handover;
  #connection: Connection | undefined;
  #tunnel: Socket | undefined;
  /** Bytes of the connection before the websocket was. */
  #before = { read: 0, written: 0 };

  constructor(handover: Handover, ...facts: ConstructorParameters<typeof Exchange>) {
    super(...facts);
    this.#handover = handover;
  }

  override begin(resolution: Resolution): void {
    const handshake = readHandshake(this.request.headers);
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

  /** @throws {ModhostError} WEBSOCKET_INVALID, WEBSOCKET_CLOSED: it cannot be accepted (any more) */
  #assertOpen(): Mount {
    const { request, response, mount } = this;
    const invalid = (reason: string) => new ModhostError("WEBSOCKET_INVALID", { id: request.id, reason });
    if (this.switched) throw invalid("it was accepted before");
    if (this.gone) throw gone();
    if (response.answered || mount === undefined) throw invalid("it was answered already");
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
    response.answered = true;
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
    // Its module began to unload before the handler accepted.
    if (mount.retired) this.retire();
    return connection;
  }

  tunnel(): WebSocketTunnel {
    this.#assertOpen();
    const { response } = this;
    const taken = this.#handover.take();
    this.#handover.detach();
    response.sink = undefined;
    response.reclaim();
    response.answered = true;
    response.status_code = 101;
    this.#tunnel = taken.socket;
    this.#before = { read: taken.socket.bytesRead, written: taken.socket.bytesWritten };
    this.settled?.();
    this.announce(101, true);
    taken.socket.on("error", () => undefined).once("close", () => this.over());
    return taken;
  }

  /** What is thrown after `accept` cannot be answered any more: it ends the connection. */
  override fail(...[thrown, ...more]: Parameters<Exchange["fail"]>): void {
    const connection = this.#connection;
    if (!this.switched) {
      super.fail(thrown, ...more);
      return;
    }
    if (this.#tellsOfEnd(thrown)) return;
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
    else void this.#connection.close(POLICY_VIOLATION, "the token is no longer good");
  }

  protected override ask(route: Route, argument: string | undefined): unknown {
    const authority = this.request.url.host ?? this.request.headers.host;
    if (!mayConnect(route.mount.origins, this.request, authority)) {
      throw new HttpError(403, "Pages of this origin may not open websockets here");
    }
    const value = super.ask(route, argument);
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
    server.handleUpgrade(this.#handover.request, socket, head, (opened) => {
      ws = opened;
    });
    if (fault !== undefined) throw new HttpError(400, fault.message);
    if (ws === undefined) {
      this.over();
      throw gone();
    }
    this.#handover.detach();
    return { ws, socket };
  }

  /** The handler was stopped by the end of the connection, or by its module leaving: by sending on it, or by a signal. */
  #tellsOfEnd(thrown: unknown): boolean {
    if (ModhostError.is(thrown)) return thrown.code === "WEBSOCKET_CLOSED";
    const { signal, leaving } = this.request;
    return thrown instanceof Error && thrown.name === "AbortError" && (signal.aborted || leaving.aborted);
  }
}
