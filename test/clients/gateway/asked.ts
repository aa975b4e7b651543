/** What a client asks over HTTP, whoever answers. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";

const channel = "undici:request:create";

export class Asked implements Disposable {
  /** Method and path of each request of this process by `fetch`. */
  readonly lines: string[] = [];
  readonly #hear = (message: unknown) => {
    const { request } = message as { request: { readonly method: string; readonly path: string } };
    this.lines.push(`${request.method} ${request.path}`);
  };

  constructor() {
    subscribe(channel, this.#hear);
  }

  [Symbol.dispose](): void {
    unsubscribe(channel, this.#hear);
  }
}
