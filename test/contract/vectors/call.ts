/** Calls a server, and returns everything about the response. */

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { Agent, request } from "node:http";
import type { Multipart } from "./content.ts";

export interface CommandCall {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly query?: readonly (readonly [name: string, value: string])[];
  readonly body?: Multipart | undefined;
}

export interface CommandReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailer: string | undefined;
  readonly body: Buffer;
}

export class CommandClient implements Disposable {
  readonly #base: string;
  readonly #agent = new Agent({ keepAlive: true });

  /** `base`: a URL such as `http://127.0.0.1:5280`. */
  constructor(base: string) {
    this.#base = base;
  }

  get port(): string {
    return new URL(this.#base).port;
  }

  call(command: string, { method = "POST", headers = {}, query = [], body }: CommandCall = {}): Promise<CommandReply> {
    const url = `${this.#base}/api/v0/${command}?${new URLSearchParams(query as [string, string][])}`;
    const type = body === undefined ? {} : { "content-type": body.type, "content-length": body.body.length };
    const { promise, resolve, reject } = Promise.withResolvers<CommandReply>();
    const outgoing = request(
      url,
      { method, agent: this.#agent, headers: { ...type, ...headers } },
      async (incoming) => {
        try {
          const content = Buffer.concat(await incoming.toArray());
          const trailer = incoming.trailers["x-stream-error"];
          resolve({ status: incoming.statusCode as number, headers: incoming.headers, trailer, body: content });
        } catch (error) {
          reject(error);
        }
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body?.body);
    return promise;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
