/** Requests of one HTTP/1 connection are worked on one after the other: those sent ahead wait for their turn. */
import type { Socket } from "node:net";
import type { IncomingMessage, ServerResponse } from "../util/node_http.ts";
import type { CurrentAnswers } from "./patches/node/current_answer.ts";
import { holdReading, resumeReading } from "./patches/node/reading.ts";

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly serve: Serve;
}

/**
 * Where a client sends requests ahead, the next begins when the answer before it is complete. Of what it has sent, one
 * piece of the network is held, at most; the rest stays in the connection.
 */
export class Turns {
  readonly #answers: CurrentAnswers;
  readonly #queues = new WeakMap<Socket, Waiting[]>();

  constructor(answers: CurrentAnswers) {
    this.#answers = answers;
  }

  /** Serves the request now, or when the answers before it are complete. */
  take(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    const { socket } = request;
    const current = this.#answers.of(socket);
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
    if (queue.length === 0) holdReading(socket);
    queue.push({ request, response, serve });
  }

  /** Requests of the connection that have not begun. */
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
    // What is still to come of its body, and requests behind it.
    if (queue?.length === 0) resumeReading(socket);
    next.serve(next.request, next.response);
  }
}
