/**
 * The responses to pending challenges of certificate authorities, by HTTP and by TLS connections
 * with their own protocol.
 */
import type { Socket } from "node:net";
import { createSecureContext, createServer, type SecureContext, type Server } from "node:tls";
import type { Proof } from "./client.ts";

/** The protocol that authorities request by ALPN (RFC 8737). */
const ACME_TLS = "acme-tls/1";

/** The length of a TLS record header: type, version, length. */
const RECORD_HEAD = 5;
const MAX_HELLO = 1 << 14;
/**
 * Milliseconds to wait for the first message of a client; after that the connection is served like
 * any other.
 */
const HELLO_TIMEOUT_MS = 10_000;

export class Challenges {
  readonly #responses = new Map<string, string>();
  readonly #contexts = new Map<string, SecureContext>();
  #server: Server | undefined;

  /** Publishes the response to a challenge; the returned function removes it. */
  async present({ type, name, token, keyAuthorization }: Proof): Promise<() => void> {
    if (type === "http-01") {
      this.#responses.set(token, keyAuthorization);
      return () => void this.#responses.delete(token);
    }
    // This module is slow to load, and needed once in months.
    const { alpnCertificate } = await import("./requests.ts");
    const { certificate, key } = await alpnCertificate(name, keyAuthorization);
    this.#contexts.set(name, createSecureContext({ cert: certificate, key, minVersion: "TLSv1.2" }));
    return () => void this.#contexts.delete(name);
  }

  /** Returns the body for `GET /.well-known/acme-challenge/<token>`. */
  responseTo(token: string): string | undefined {
    return this.#responses.get(token);
  }

  /** Whether an authority may connect with its own protocol. */
  get takesConnections(): boolean {
    return this.#contexts.size > 0;
  }

  /**
   * Handles a connection if it comes from an authority; any other is passed to `serve`, with all
   * its bytes.
   */
  take(socket: Socket, serve: () => void): void {
    const chunks: Buffer[] = [];
    let size = 0;
    const decide = (isOver: boolean) => {
      const hello = Buffer.concat(chunks);
      const whole = hello.length < RECORD_HEAD ? Number.POSITIVE_INFINITY : RECORD_HEAD + hello.readUInt16BE(3);
      if (!isOver && size < Math.min(whole, MAX_HELLO)) return;
      clearTimeout(timer);
      socket.off("readable", read).off("end", end).off("close", end);
      if (size > 0) socket.unshift(hello);
      if (socket.destroyed) return;
      if (hello.includes(ACME_TLS)) this.#authority().emit("connection", socket);
      else serve();
    };
    const read = () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
        chunks.push(chunk);
        size += chunk.length;
      }
      decide(false);
    };
    const end = () => decide(true);
    const timer = setTimeout(end, HELLO_TIMEOUT_MS).unref();
    socket.on("readable", read).once("end", end).once("close", end);
  }

  /**
   * Returns the server for authorities. It closes each connection after its handshake, which is all
   * they need.
   */
  #authority(): Server {
    if (this.#server !== undefined) return this.#server;
    this.#server = createServer({
      ALPNProtocols: [ACME_TLS],
      SNICallback: (name, responseTo) => {
        const context = this.#contexts.get(name.toLowerCase());
        if (context === undefined) responseTo(new Error("no challenge is pending for this name"));
        else responseTo(null, context);
      },
    });
    this.#server.on("secureConnection", (socket) => socket.on("error", () => undefined).end());
    this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
    return this.#server;
  }
}
