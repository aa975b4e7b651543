/** Serves the requests of one HTTP/1 connection one after the other. */
import type { Socket } from "node:net";
import type { IncomingMessage, ServerResponse } from "../../util/node_http.ts";
import type { CurrentResponses } from "../patches/node/current_response.ts";
import { pauseReading, resumeReading } from "../patches/node/reading.ts";

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly serve: Serve;
}

/**
 * Begins a pipelined request when the response before it is complete. At most one network read of
 * the client's further input is in memory; the rest stays in the connection.
 */
export class PipelinedRequests {
  readonly #responses: CurrentResponses;
  readonly #queues = new WeakMap<Socket, Waiting[]>();

  constructor(responses: CurrentResponses) {
    this.#responses = responses;
  }

  /** Serves the request now, or when the responses before it are complete. */
  take(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    const { socket } = request;
    const current = this.#responses.of(socket);
    if (current === response || current === undefined) {
      serve(request, response);
      return;
    }
    let queue = this.#queues.get(socket);
    if (queue === undefined) {
      queue = [];
      this.#queues.set(socket, queue);
      current.once("close", () => this.#next(socket));
    }
    if (queue.length === 0) pauseReading(socket);
    queue.push({ request, response, serve });
  }

  /** Number of requests of the connection that have not begun. */
  waiting(socket: Socket): number {
    return this.#queues.get(socket)?.length ?? 0;
  }

  #next(socket: Socket): void {
    const queue = this.#queues.get(socket);
    const next = socket.destroyed || socket.writableEnded ? undefined : queue?.shift();
    if (next === undefined) {
      this.#queues.delete(socket);
      return;
    }
    next.response.once("close", () => this.#next(socket));
    // The rest of its body, and later requests, are still in the connection.
    if (queue?.length === 0) resumeReading(socket);
    next.serve(next.request, next.response);
  }
}
