/** Requests to a gateway that cost the one who asks little. */
import { Pool } from "undici";

export interface Get {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What the answer has at least. */
  readonly bytes: number;
}

/** Runs the requests, `atOnce` at a time over as many connections. Rejects at the first answer that is not whole. */
export async function getAll(url: string, requests: Iterable<Get>, atOnce: number): Promise<void> {
  const pool = new Pool(url, { connections: atOnce, pipelining: 1 });
  const waiting = requests[Symbol.iterator]();
  const work = async () => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) await get(pool, next.value);
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, work));
  } finally {
    await pool.close();
  }
}

function get(pool: Pool, { path, headers = {}, bytes }: Get): Promise<void> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let length = 0;
    pool.dispatch(
      { method: "GET", path, headers },
      {
        onRequestStart() {},
        onResponseStart(_controller, statusCode) {
          status = statusCode;
        },
        onResponseData(_controller, chunk) {
          length += chunk.length;
        },
        onResponseEnd() {
          const wanted = headers.range === undefined ? 200 : 206;
          if (status === wanted && length >= bytes) resolve();
          else reject(new Error(`${path} answered ${status} with ${length} bytes, and not ${wanted} with ${bytes}`));
        },
        onResponseError(_controller, error) {
          reject(error);
        },
      },
    );
  });
}
