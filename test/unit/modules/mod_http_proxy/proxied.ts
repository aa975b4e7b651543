/** A host whose apps forward requests to servers of the test. */
import { once } from "node:events";
import http, { type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { startHost, type TestHost } from "#test/support/host.ts";

export interface Upstream extends AsyncDisposable {
  readonly server: http.Server;
  readonly url: string;
  readonly port: number;
  /** Requests so far: method and target. */
  readonly seen: string[];
  /** Connections that are open. */
  readonly sockets: ReadonlySet<Socket>;
  /** Ends it and its connections at once; the port is free. */
  stop(): Promise<void>;
}

/** Starts a server on a loopback port. Without a listener it responds with the request as JSON. */
export async function upstream(listener: RequestListener = describeRequest, port = 0): Promise<Upstream> {
  const seen: string[] = [];
  const server = http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    listener(request, response);
  });
  const sockets = track(server);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: own } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  return { server, url: `http://127.0.0.1:${own}`, port: own, seen, sockets, stop, [Symbol.asyncDispose]: stop };
}

export function track(server: Server): Set<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket)).on("error", () => undefined);
  });
  return sockets;
}

/** A request as an upstream has received it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly raw: readonly string[];
  readonly body: string;
  readonly trailers: Readonly<Record<string, string | undefined>>;
}

function describeRequest(request: IncomingMessage, response: ServerResponse): void {
  void text(request).then(
    (body) => {
      const { method, url, headers, rawHeaders: raw, trailers } = request;
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ method, url, headers, raw, body, trailers }));
    },
    () => undefined,
  );
}

export function seenRequest(reply: { readonly text: string }): SeenRequest {
  return JSON.parse(reply.text) as SeenRequest;
}

/** Starts a host with the module and these entries of its option. */
export function proxied(http_proxy: unknown, more: Record<string, unknown> = {}): Promise<TestHost> {
  return startHost({ config: { modules_enabled: ["http", "http_proxy"], http_proxy, ...more } });
}
