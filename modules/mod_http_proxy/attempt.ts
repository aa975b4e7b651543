/** One request to one upstream, from its connection to the head of its answer. */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Framing } from "../../core/http/index.ts";
import { ModhostError } from "../../core/index.ts";
import type { HttpRequest } from "../../core/types.ts";
import { faultOf, UpstreamFault } from "./fault.ts";
import { requestTrailers } from "./fields.ts";
import type { Settings } from "./settings.ts";
import type { Upstream } from "./upstream.ts";

/** Milliseconds for which an upstream may let a client wait that expects to be asked for its body. */
const CONTINUE_TIME_MS = 1000;

/** Largest head of an answer, in bytes. */
const MAX_HEADER_SIZE = 64 * 1024;

/** Statuses of answers (RFC 9110, 15). */
const MIN_STATUS = 200;
const MAX_STATUS = 599;

export interface Answer {
  readonly incoming: IncomingMessage;
  /** Of an upstream that goes on with a websocket: its connection, and what it has sent already. */
  readonly tunnel: { readonly socket: Socket; readonly head: Buffer } | undefined;
}

export interface AttemptDeps {
  readonly request: HttpRequest;
  readonly upstream: Upstream;
  readonly settings: Settings;
  readonly path: string;
  readonly fields: readonly string[];
  readonly framing: Framing;
  readonly isFresh: boolean;
  /** It asks for a websocket. */
  readonly isUpgrade: boolean;
  /** Hears of answers before the answer, such as 103. */
  informed(status: number, rawHeaders: readonly string[]): void;
}

export class Attempt {
  /** Rejects with an UpstreamFault, or with what went wrong with the body on its way from the client. */
  readonly answer: Promise<Answer>;
  /** Bytes may have reached the upstream. */
  isConnected = false;
  /** The body of the client is being read: nobody else can send it again. */
  hasBegunBody = false;
  readonly #deps: AttemptDeps;
  readonly #outgoing: ClientRequest;
  readonly #settle: PromiseWithResolvers<Answer>;
  #timer: NodeJS.Timeout | undefined;
  #isSettled = false;

  /** @throws {TypeError} for a path that cannot be asked for */
  constructor(deps: AttemptDeps) {
    this.#deps = deps;
    const { upstream, settings, request, path, fields, framing, isFresh } = deps;
    this.#settle = Promise.withResolvers();
    this.answer = this.#settle.promise;
    this.#outgoing = upstream.open(
      { method: request.method, path, headers: fields as never, maxHeaderSize: MAX_HEADER_SIZE },
      isFresh,
    );
    upstream.begin();
    this.#listen(this.#outgoing);
    this.#wait(settings.connect_timeout, "connecting took too long");
    if (framing.hasBody)
      this.#outgoing.once("socket", (socket: Socket) => this.#whenConnected(socket, () => this.#begin()));
    else this.#outgoing.end();
  }

  /** It was sent on a connection that had been used before, and may have been closed meanwhile. */
  get isReused(): boolean {
    return this.#outgoing.reusedSocket;
  }

  /** Ends it, whatever it is doing. */
  abort(): void {
    this.#outgoing.destroy();
  }

  #listen(outgoing: ClientRequest): void {
    const { upstream, settings, informed, framing, isUpgrade } = this.#deps;
    let isTunnel = false;
    outgoing.once("socket", (socket: Socket) =>
      this.#whenConnected(socket, () => {
        this.isConnected = true;
        if (!framing.hasBody) this.#waitForAnswer();
      }),
    );
    outgoing.on("information", ({ statusCode, rawHeaders }) => informed(statusCode, rawHeaders));
    outgoing.once("response", (incoming) => {
      const { statusCode = 0 } = incoming;
      if (statusCode < MIN_STATUS || statusCode > MAX_STATUS) {
        this.#failed(new UpstreamFault("bad_answer", `it answered with the status ${statusCode}`));
        incoming.destroy();
        return;
      }
      outgoing.setTimeout(settings.idle_timeout * 1000);
      this.#done({ incoming, tunnel: undefined });
    });
    outgoing.once("upgrade", (incoming, socket, head) => {
      if (!isUpgrade) {
        this.#failed(new UpstreamFault("bad_answer", "it goes on with another protocol, which nobody has asked for"));
        socket.destroy();
        return;
      }
      isTunnel = true;
      socket.once("close", () => upstream.end());
      this.#done({ incoming, tunnel: { socket: socket as Socket, head } });
    });
    outgoing.on("timeout", () => this.#idle());
    outgoing.on("error", (error) => this.#failed(faultOf(error, this.isConnected)));
    outgoing.once("close", () => {
      if (!isTunnel) upstream.end();
      if (!this.#isSettled) this.#failed(new UpstreamFault("lost", "it closed the connection without an answer"));
    });
  }

  #whenConnected(socket: Socket, connected: () => void): void {
    const { secure } = this.#deps.upstream.address;
    const isReady = secure ? (socket as TLSSocket).getProtocol() !== null && !socket.connecting : !socket.connecting;
    if (isReady) connected();
    else socket.once(secure ? "secureConnect" : "connect", connected);
  }

  /** Sends the body, once the upstream asks for it where the client waits for that. */
  #begin(): void {
    this.#stopWaiting();
    this.#outgoing.flushHeaders();
    if (!this.#deps.framing.expects) {
      void this.#send();
      return;
    }
    const go = () => {
      clearTimeout(timer);
      if (!this.#isSettled && !this.hasBegunBody) void this.#send();
    };
    const timer = setTimeout(go, CONTINUE_TIME_MS);
    this.#outgoing
      .once("continue", go)
      .once("response", () => clearTimeout(timer))
      .once("close", () => clearTimeout(timer));
  }

  async #send(): Promise<void> {
    this.hasBegunBody = true;
    const { request, settings } = this.#deps;
    const outgoing = this.#outgoing;
    const limit = settings.max_body > 0 ? settings.max_body : Number.POSITIVE_INFINITY;
    let length = 0;
    try {
      for await (const piece of request.body_stream) {
        length += piece.length;
        if (length > limit) throw new ModhostError("BODY_TOO_LARGE", { limit });
        if (outgoing.destroyed) return;
        if (!outgoing.write(piece)) await this.#drained();
      }
      if (outgoing.destroyed) return;
      if (request.raw.rawTrailers.length > 0) outgoing.addTrailers(requestTrailers(request.raw.rawTrailers, settings));
      outgoing.end();
      if (!this.#isSettled) this.#waitForAnswer();
    } catch (error) {
      // The client's own fault, or it has left.
      this.#failed(error);
      outgoing.destroy();
    }
  }

  /** No faster than the upstream takes it; one that takes nothing for too long is given up. */
  #drained(): Promise<void> {
    const outgoing = this.#outgoing;
    return new Promise((resolve) => {
      const go = () => {
        clearTimeout(timer);
        outgoing.off("drain", go).off("close", go);
        resolve();
      };
      const late = () => outgoing.destroy(new UpstreamFault("timeout", "it takes no more of the request"));
      const timer = setTimeout(late, this.#deps.settings.idle_timeout * 1000);
      outgoing.on("drain", go).on("close", go);
    });
  }

  /** Nothing has moved on the connection since the answer began. */
  #idle(): void {
    const outgoing = this.#outgoing;
    const incoming = (outgoing as unknown as { readonly res?: IncomingMessage }).res;
    const isWaiting = incoming !== undefined && incoming.readableLength === 0;
    if (isWaiting) incoming.destroy(new UpstreamFault("timeout", "it sends no more of its answer"));
    // It is the client that is slow, and the host's matter.
    else outgoing.socket?.setTimeout(this.#deps.settings.idle_timeout * 1000);
  }

  #waitForAnswer(): void {
    if (!this.#isSettled) this.#wait(this.#deps.settings.response_timeout, "its answer took too long");
  }

  #wait(seconds: number, message: string): void {
    this.#stopWaiting();
    this.#timer = setTimeout(() => {
      const fault = new UpstreamFault("timeout", message);
      this.#failed(fault);
      this.#outgoing.destroy(fault);
    }, seconds * 1000);
  }

  #stopWaiting(): void {
    clearTimeout(this.#timer);
  }

  #done(answer: Answer): void {
    this.#isSettled = true;
    this.#stopWaiting();
    this.#settle.resolve(answer);
  }

  #failed(error: unknown): void {
    this.#isSettled = true;
    this.#stopWaiting();
    this.#settle.reject(error);
  }
}
