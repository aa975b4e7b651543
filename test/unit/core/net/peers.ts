/**
 * Servers for the client to talk to: well-behaved ones, and ones that send whatever bytes they are
 * told to.
 */
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

/** A client that leaves in the middle is part of the tests: the listener's failure then is none. */
function forgiving(listener: RequestListener): RequestListener {
  return (request, response) => {
    Promise.try(() => listener(request, response)).catch(() => response.destroy());
  };
}

/** Called with each connection, and what the client sent first. */
export function rawPeer(answer: (socket: Socket, request: string) => unknown): Promise<Peer> {
  const server = createRaw((socket) => socket.once("data", (bytes) => answer(socket, bytes.toString("latin1"))));
  return listening(server, "http");
}

/** Called with each connection, before the client has sent anything. */
export function barePeer(greet: (socket: Socket) => unknown): Promise<Peer> {
  const server = createRaw((socket) => {
    socket.resume();
    greet(socket);
  });
  return listening(server, "http");
}

/** What `echoPeer` got of a request. */
export interface Echo {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers each request with what it got of it; `echo` reads that answer. */
export const echoPeer = (): Promise<Peer> =>
  httpPeer(async (incoming, answer) => {
    const { method, url: path, headers } = incoming;
    answer.end(JSON.stringify({ method, path, headers, body: await textOf(incoming) }));
  });

export const echo = ({ body }: { readonly body: string }): Echo => JSON.parse(body);

export async function textOf(request: IncomingMessage): Promise<string> {
  return Buffer.concat(await request.toArray()).toString();
}

/** The error that the request rejects with, which must be of this kind. */
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
