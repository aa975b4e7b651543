/** Servers for tests of the client: well-behaved ones, and ones that send arbitrary bytes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer as createHttp,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
} from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer as createRaw, type Server, type Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import { RequestError, type RequestFailure } from "#core/net/http.ts";

export interface Peer extends AsyncDisposable {
  /** Without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** Connections open now. */
  readonly open: number;
  /** Resolves when no connection is open. */
  idle(): Promise<void>;
}

async function listening(server: Server, scheme: string): Promise<Peer> {
  const sockets = new Map<Socket, Promise<void>>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted++;
    const { promise, resolve } = Promise.withResolvers<void>();
    sockets.set(socket, promise);
    socket
      .on("error", () => {})
      .on("close", () => {
        sockets.delete(socket);
        resolve();
      });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    get accepted() {
      return accepted;
    },
    get open() {
      return sockets.size;
    },
    async idle() {
      await Promise.all(sockets.values());
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.keys()) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

export function httpPeer(listener: RequestListener): Promise<Peer> {
  return listening(createHttp(forgiving(listener)), "http");
}

export function httpsPeer(options: TlsOptions, listener: RequestListener): Promise<Peer> {
  return listening(createHttps(options, forgiving(listener)), "https");
}

/** In some tests the client disconnects in the middle: an error of the listener is then ignored. */
function forgiving(listener: RequestListener): RequestListener {
  return (request, response) => {
    Promise.try(() => listener(request, response)).catch(() => response.destroy());
  };
}

/** `respond` is called with each connection and the first bytes of the client. */
export function rawPeer(response: (socket: Socket, request: string) => unknown): Promise<Peer> {
  const server = createRaw((socket) => socket.once("data", (bytes) => response(socket, bytes.toString("latin1"))));
  return listening(server, "http");
}

/** `greet` is called with each connection, before the client has sent anything. */
export function barePeer(greet: (socket: Socket) => unknown): Promise<Peer> {
  const server = createRaw((socket) => {
    socket.resume();
    greet(socket);
  });
  return listening(server, "http");
}

/** The request that `echoPeer` received. */
export interface Echo {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Responds to each request with a description of it, which `echo` reads. */
export const echoPeer = (): Promise<Peer> =>
  httpPeer(async (incoming, response) => {
    const { method, url: path, headers } = incoming;
    response.end(JSON.stringify({ method, path, headers, body: await textOf(incoming) }));
  });

export const echo = ({ body }: { readonly body: string }): Echo => JSON.parse(body);

export async function textOf(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await request.toArray()).toString();
}

/** Returns the error with which the request rejects, and checks its kind. */
export async function failure(code: RequestFailure, result: Promise<unknown>): Promise<RequestError> {
  try {
    await result;
  } catch (error) {
    assert.ok(error instanceof RequestError, String(error));
    assert.equal(error.code, code, `${error.message} (${String(error.cause)})`);
    assert.doesNotMatch(error.message, /\{\w+\}|undefined/);
    return error;
  }
  assert.fail(`The request should have failed with ${code}`);
}
