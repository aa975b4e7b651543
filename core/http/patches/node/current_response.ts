import { Socket } from "node:net";
import { IncomingMessage, ServerResponse } from "../../../util/node_http.ts";

/** Finds the response that is being sent on an HTTP/1 connection. */
export interface CurrentResponses {
  /**
   * Registers the response to a request. Must be called for each request of a connection, in their
   * order.
   */
  begin?(socket: Socket, response: ServerResponse): void;
  /** Returns the response that is being sent on the connection; undefined while there is none. */
  of(socket: Socket): ServerResponse | undefined;
}

type Insides = Socket & { readonly _httpMessage?: ServerResponse | null };

/** Reads the response from Node's own field. */
const known: CurrentResponses = {
  of: (socket) => (socket as Insides)._httpMessage ?? undefined,
};

/** Keeps a list of responses, without reading Node's own field. */
export class ListedResponses implements CurrentResponses {
  readonly #lists = new WeakMap<Socket, ServerResponse[]>();

  begin(socket: Socket, response: ServerResponse): void {
    const list = this.#lists.get(socket) ?? [];
    this.#lists.set(socket, list);
    list.push(response);
    response.once("close", () => void list.splice(list.indexOf(response), 1));
  }

  of(socket: Socket): ServerResponse | undefined {
    return this.#lists.get(socket)?.[0];
  }
}

/**
 * Returns why the host keeps a list, in a sentence; undefined when Node's own field can be used.
 */
export function whyResponsesAreListed(responses = known): string | undefined {
  const socket = new Socket();
  const response = new ServerResponse(new IncomingMessage(socket));
  response.assignSocket(socket);
  const found = responses.of(socket);
  response.detachSocket(socket);
  if (found === response && responses.of(socket) === undefined) return undefined;
  return "this version of Node.js does not show which response a connection is sending: the host keeps a list of its own";
}

export function currentResponses(): CurrentResponses {
  return whyResponsesAreListed() === undefined ? known : new ListedResponses();
}
