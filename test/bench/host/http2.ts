/** Sends requests over persistent HTTP/2 sessions. */
import { type ClientHttp2Session, connect } from "node:http2";

export class Sessions {
  readonly #all: readonly ClientHttp2Session[];
  readonly #streams: number;

  private constructor(all: readonly ClientHttp2Session[], streams: number) {
    this.#all = all;
    this.#streams = streams;
  }

  /** `streams`: parallel requests on each session. */
  static async open(port: number, count: number, streams: number): Promise<Sessions> {
    const all = Array.from({ length: count }, () =>
      connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false }),
    );
    await Promise.all(
      all.map((session) => new Promise((resolve, reject) => session.once("connect", resolve).once("error", reject))),
    );
    return new Sessions(all, streams);
  }

  async ask(path: string, count: number, status = 200): Promise<void> {
    let left = count;
    const work = async (session: ClientHttp2Session) => {
      while (left > 0) {
        left -= 1;
        await get(session, path, status);
      }
    };
    await Promise.all(this.#all.flatMap((session) => Array.from({ length: this.#streams }, () => work(session))));
  }

  close(): void {
    for (const session of this.#all) session.destroy();
  }
}

function get(session: ClientHttp2Session, path: string, status: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": path }, { endStream: true });
    stream.on("response", ({ ":status": given }) => {
      if (given !== status) reject(new Error(`${path}: status ${given}`));
    });
    stream.on("end", () => resolve()).on("error", reject);
    stream.resume();
  });
}
