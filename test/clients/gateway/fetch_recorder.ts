/** Records the HTTP requests of this process. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";

const channel = "undici:request:create";

export class FetchRecorder implements Disposable {
  /** Method and path of each request that this process has sent with `fetch`. */
  readonly lines: string[] = [];
  readonly #onRequest = (message: unknown) => {
    const { request } = message as { request: { readonly method: string; readonly path: string } };
    this.lines.push(`${request.method} ${request.path}`);
  };

  constructor() {
    subscribe(channel, this.#onRequest);
  }

  [Symbol.dispose](): void {
    unsubscribe(channel, this.#onRequest);
  }
}
