import { Socket } from "node:net";
import { IncomingMessage, ServerResponse } from "../../../util/node_http.ts";

/** Tells which answer has a connection of HTTP/1. */
export interface CurrentAnswers {
  /** To be told of each request: its answer will have the connection after those before it. */
  begin?(socket: Socket, response: ServerResponse): void;
  /** The answer that has the connection; undefined while none has. */
  of(socket: Socket): ServerResponse | undefined;
}

type Insides = Socket & { readonly _httpMessage?: ServerResponse | null };

/** Node's own knowledge. */
const known: CurrentAnswers = {
  of: (socket) => (socket as Insides)._httpMessage ?? undefined,
};

/** The same without looking into Node's objects. */
export class ListedAnswers implements CurrentAnswers {
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

/** Why Node is not asked, in a sentence; undefined when it is. */
export function whyAnswersAreListed(answers = known): string | undefined {
  const socket = new Socket();
  const response = new ServerResponse(new IncomingMessage(socket));
  response.assignSocket(socket);
  const found = answers.of(socket);
  response.detachSocket(socket);
  if (found === response && answers.of(socket) === undefined) return undefined;
  return "this version of Node.js does not tell which answer has a connection: the host keeps a list of its own";
}

export function currentAnswers(): CurrentAnswers {
  return whyAnswersAreListed() === undefined ? known : new ListedAnswers();
}
