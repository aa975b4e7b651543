/**
 * One request to another server, process or worker, from its connection to the head of its
 * response.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { faultOf, RelayFault } from "./fault.ts";
import { sendHead } from "./message.ts";
import type { Tunnel } from "./tunnel.ts";

/**
 * Milliseconds to wait for an invitation before the body of a client is sent that waits for one.
 */
const CONTINUE_TIME_MS = 1000;

/** Maximum number of interim responses, such as 103, to one request: each costs time and bytes. */
const MAX_INTERIM = 100;

/** The lowest status of a final response (RFC 9110, 15). */
const MIN_STATUS = 200;

export interface Received {
  readonly incoming: IncomingMessage;
  /** The connection to a server that has accepted the upgrade to a websocket. */
  readonly tunnel: Tunnel | undefined;
}

/** Maximum waits in seconds. */
export interface RelayTimeouts {
  readonly connect: number;
  /** From the end of the request to the head of the response. */
  readonly response: number;
  /** Without progress of a body. */
  readonly idle: number;
}

export interface OutgoingOptions {
  /**
   * Undefined for a request without a body. Nothing is read of it before the connection is open.
   */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Returns the trailers. Called after the body has been read. */
  trailers?(): readonly [string, string][];
  /** Whether the client waits to be invited to send its body. */
  readonly expects?: boolean;
  /** Whether the request is for a websocket. */
  readonly isUpgrade?: boolean;
  /** Undefined: only the client and the server that responds decide how long the request takes. */
  readonly timeouts?: RelayTimeouts;
  /** Called for each interim response, such as 100 and 103. */
  informed?(status: number, rawHeaders: readonly string[]): void;
  /** Called when the request and its response, or its tunnel, have ended. */
  ended?(): void;
}

export class OutgoingRequest {
  /** Rejects with a RelayFault, or with the error of the body on its way from the client. */
  readonly response: Promise<Received>;
  /** Whether bytes may have reached the other end. */
  isConnected = false;
  /** Whether reading the client's body has begun, so that it cannot be sent to another server. */
  hasBegunBody = false;
  readonly #request: ClientRequest;
  readonly #options: OutgoingOptions;
  readonly #settle: PromiseWithResolvers<Received>;
  #timer: NodeJS.Timeout | undefined;
  #isSettled = false;
  #isTunnel = false;

  constructor(request: ClientRequest, options: OutgoingOptions) {
    this.#request = request;
    this.#options = options;
    this.#settle = Promise.withResolvers();
    this.response = this.#settle.promise;
    // By default Node.js drops all header fields after the first thousand. The size of the head is
    // bounded anyway.
    request.maxHeadersCount = 0;
    this.#listen(request);
    if (options.timeouts !== undefined) this.#wait(options.timeouts.connect, "connecting took too long");
    if (options.body === undefined) request.end();
  }

  /**
   * Whether it was sent on a connection that had been used before, and that may have been closed in
   * the meantime.
   */
  get isReused(): boolean {
    return this.#request.reusedSocket;
  }

  /** Ends the request, whatever its state. Has no effect on a tunnel. */
  abort(): void {
    if (!this.#isTunnel) this.#request.destroy();
  }

  /** Ends the sending side of the connection, as the client has ended its own. */
  endConnection(): void {
    this.#request.socket?.end();
  }

  #listen(request: ClientRequest): void {
    const { informed, isUpgrade = false, ended } = this.#options;
    request.once("socket", (socket: Socket) => whenConnected(socket, () => this.#connected()));
    if (informed !== undefined) {
      let count = 0;
      request.on("information", ({ statusCode, rawHeaders }) => {
        count += 1;
        if (count <= MAX_INTERIM) informed(statusCode, rawHeaders);
        else request.destroy(new RelayFault("bad_answer", "it sends too many interim responses"));
      });
    }
    request.once("response", (incoming) => {
      const { statusCode = 0 } = incoming;
      if (statusCode < MIN_STATUS) {
        this.#failed(new RelayFault("bad_answer", `its response has the status ${statusCode}`));
        incoming.destroy();
        return;
      }
      this.#watch(incoming);
      this.#done({ incoming, tunnel: undefined });
    });
    request.once("upgrade", (incoming, socket, head) => {
      if (!isUpgrade || incoming.headers.upgrade?.toLowerCase() !== "websocket") {
        this.#failed(new RelayFault("bad_answer", "it switched to a protocol that was not requested"));
        socket.destroy();
        return;
      }
      this.#isTunnel = true;
      // Node.js has removed its own listeners, and an error without a listener would end the
      // process.
      socket.on("error", () => undefined).once("close", () => ended?.());
      this.#done({ incoming, tunnel: { socket: socket as Socket, head } });
    });
    request.on("error", (error) => this.#failed(faultOf(error, this.isConnected)));
    request.once("close", () => {
      if (!this.#isTunnel) ended?.();
      if (!this.#isSettled) this.#failed(new RelayFault("lost", "it closed the connection without a response"));
    });
  }

  #connected(): void {
    this.isConnected = true;
    const { body, expects } = this.#options;
    if (body === undefined) this.#waitForResponse();
    else if (expects === true) this.#sendWhenInvited(body);
    else {
      clearTimeout(this.#timer);
      void this.#send(body);
      // The server may begin before anything of the body has arrived. Pieces that have arrived are
      // sent together with the head.
      setImmediate(() => this.#request.headersSent || this.#request.destroyed || sendHead(this.#request));
    }
  }

  #sendWhenInvited(body: AsyncIterable<Uint8Array>): void {
    clearTimeout(this.#timer);
    sendHead(this.#request);
    const send = () => {
      clearTimeout(timer);
      if (!this.#isSettled && !this.hasBegunBody) void this.#send(body);
    };
    const timer = setTimeout(send, CONTINUE_TIME_MS);
    this.#request
      .once("continue", send)
      .once("response", () => clearTimeout(timer))
      .once("close", () => clearTimeout(timer));
  }

  async #send(body: AsyncIterable<Uint8Array>): Promise<void> {
    this.hasBegunBody = true;
    const request = this.#request;
    try {
      for await (const piece of body) {
        if (request.destroyed) return;
        if (!request.write(piece)) await this.#drained();
      }
      if (request.destroyed) return;
      const trailers = this.#options.trailers?.() ?? [];
      if (trailers.length > 0) request.addTrailers(trailers);
      request.end();
      this.#waitForResponse();
    } catch (error) {
      // The client has made a mistake, or has left.
      this.#failed(error);
      request.destroy();
    }
  }

  /**
   * Waits until the other end accepts more bytes. Ends the request if it accepts none for too long.
   */
  #drained(): Promise<void> {
    const request = this.#request;
    const { timeouts } = this.#options;
    return new Promise((resolve) => {
      const resume = () => {
        clearTimeout(timer);
        request.off("drain", resume).off("close", resume);
        resolve();
      };
      const late = () => request.destroy(new RelayFault("timeout", "it stopped reading the request"));
      const timer = timeouts && setTimeout(late, timeouts.idle * 1000);
      request.on("drain", resume).on("close", resume);
    });
  }

  /**
   * Aborts a response that makes no progress for too long. The timeout is set once the response has
   * begun: until then the connection has the timeout of the pool, which must not end a request.
   */
  #watch(incoming: IncomingMessage): void {
    const { timeouts } = this.#options;
    if (timeouts === undefined) return;
    const { socket } = incoming;
    const milliseconds = timeouts.idle * 1000;
    const idle = () => {
      // If received bytes are not read, the client is too slow. The host deals with slow clients.
      if (incoming.complete || incoming.readableLength > 0) socket.setTimeout(milliseconds);
      else incoming.destroy(new RelayFault("timeout", "it stopped sending its response"));
    };
    socket.setTimeout(milliseconds).on("timeout", idle);
    incoming.once("close", () => socket.off("timeout", idle));
  }

  #waitForResponse(): void {
    const { timeouts } = this.#options;
    if (timeouts !== undefined && !this.#isSettled) this.#wait(timeouts.response, "its response took too long");
  }

  #wait(seconds: number, message: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const fault = new RelayFault("timeout", message);
      this.#failed(fault);
      this.#request.destroy(fault);
    }, seconds * 1000);
  }

  #done(received: Received): void {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#settle.resolve(received);
  }

  #failed(error: unknown): void {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#settle.reject(error);
  }
}

function whenConnected(socket: Socket, connected: () => void): void {
  const isSecure = (socket as TLSSocket).encrypted === true;
  const isReady = !socket.connecting && !(isSecure && (socket as TLSSocket).getProtocol() === null);
  if (isReady) connected();
  else socket.once(isSecure ? "secureConnect" : "connect", connected);
}
