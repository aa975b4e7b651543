/** Proofs that certificate authorities are shown now: by HTTP, and by TLS connections of their own protocol. */
import type { Socket } from "node:net";
import { createSecureContext, createServer, type SecureContext, type Server } from "node:tls";
import type { Proof } from "./client.ts";

/** The protocol that authorities ask for by ALPN (RFC 8737). */
const ACME_TLS = "acme-tls/1";

/** Of a TLS record: type, version, length. */
const RECORD_HEAD = 5;
const MAX_HELLO = 1 << 14;
/** The first message of a client comes within this time, milliseconds; else the connection goes on as any other. */
const HELLO_TIMEOUT_MS = 10_000;

export class Challenges {
  readonly #answers = new Map<string, string>();
  readonly #contexts = new Map<string, SecureContext>();
  #server: Server | undefined;

  /** Makes a proof visible; the returned function takes it away. */
  async present({ type, name, token, keyAuthorization }: Proof): Promise<() => void> {
    if (type === "http-01") {
      this.#answers.set(token, keyAuthorization);
      return () => void this.#answers.delete(token);
    }
    // Slow to load, and needed once in months.
    const { alpnCertificate } = await import("./requests.ts");
    const { certificate, key } = await alpnCertificate(name, keyAuthorization);
    this.#contexts.set(name, createSecureContext({ cert: certificate, key, minVersion: "TLSv1.2" }));
    return () => void this.#contexts.delete(name);
  }

  /** What is answered to `GET /.well-known/acme-challenge/<token>`. */
  answer(token: string): string | undefined {
    return this.#answers.get(token);
  }

  /** An authority may connect by its own protocol. */
  get takesConnections(): boolean {
    return this.#contexts.size > 0;
  }

  /** Takes a connection over if it is one of an authority; any other is handed to `serve`, with nothing of it lost. */
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

  /** Closes each connection after its handshake: that is all an authority wants. */
  #authority(): Server {
    if (this.#server !== undefined) return this.#server;
    this.#server = createServer({
      ALPNProtocols: [ACME_TLS],
      SNICallback: (name, answer) => {
        const context = this.#contexts.get(name.toLowerCase());
        if (context === undefined) answer(new Error("no proof is shown for this name"));
        else answer(null, context);
      },
    });
    this.#server.on("secureConnection", (socket) => socket.on("error", () => undefined).end());
    this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
    return this.#server;
  }
}
