/** A pinning service for tests. It records requests, and responds as the test says. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface ServiceRequest {
  readonly method: string;
  /** Path below the endpoint, with the query. */
  readonly target: string;
  readonly authorization: string | undefined;
  readonly body: Record<string, unknown> | undefined;
}

export interface ServiceReply {
  readonly status?: number;
  /** JSON, unless `type` says otherwise. */
  readonly body?: unknown;
  readonly type?: string;
}

/** "drop" closes the connection without a response, "wait" never responds. */
export type ServiceResponder = (request: ServiceRequest) => ServiceReply | "drop" | "wait";

export interface FakeService extends AsyncDisposable {
  readonly endpoint: string;
  /** The requests since the last call of `respondWith`. */
  requests: ServiceRequest[];
  respondWith(responder: ServiceResponder): void;
  /** Resolves when a client has disconnected before its response. */
  left(): Promise<void>;
}

export async function startService(): Promise<FakeService> {
  let responder: ServiceResponder = () => ({ status: 404 });
  let left = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const text = Buffer.concat(pieces).toString();
    const received: ServiceRequest = {
      method: request.method ?? "",
      target: request.url?.replace(/^\/api/, "") ?? "",
      authorization: request.headers.authorization,
      body: text === "" ? undefined : JSON.parse(text),
    };
    service.requests.push(received);
    const reply = responder(received);
    if (reply === "drop") request.socket.destroy();
    else if (reply === "wait") response.on("close", () => left.resolve());
    else {
      const { status = 200, body, type = "application/json" } = reply;
      response.writeHead(status, { "content-type": type });
      response.end(type === "application/json" ? JSON.stringify(body) : body);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const service: FakeService = {
    endpoint: `http://127.0.0.1:${port}/api`,
    requests: [],
    respondWith(next) {
      responder = next;
      service.requests = [];
      left = Promise.withResolvers();
    },
    left: () => left.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

export const defaultCid = "QmUo7E7B57p4NYsh7rbzFuHpWqWvCknfbzyzNAu38zRHo8";

/** A pin in the form that services return. */
export const pinStatus = (over: Record<string, unknown> = {}) => ({
  requestid: "r1",
  status: "pinned",
  created: "2021-06-23T10:11:12.987Z",
  pin: { cid: defaultCid, name: "x" },
  delegates: [],
  ...over,
});
