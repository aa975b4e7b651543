/** An HTTP client that costs little CPU, so that the server is what is measured. */
import { connect } from "node:net";
import { Pool } from "undici";

export interface Upload {
  readonly type: string;
  readonly length: number;
  pieces(): Iterable<Uint8Array>;
}

/** Makes the whole body beforehand, so that only sending is measured. */
export function ready(upload: Upload): Upload {
  const bytes = whole(upload);
  return { ...upload, pieces: () => [bytes] };
}

function whole(upload: Upload): Uint8Array {
  const [first = new Uint8Array(), ...more] = upload.pieces();
  return more.length === 0 ? first : Buffer.concat([first, ...more]);
}

export interface Received {
  /** Bytes of the response, including head and framing. */
  readonly bytes: number;
  /** Text of the last few hundred bytes. */
  readonly tail: string;
}

const receiveBytes = 256 * 1024;
const tailBytes = 400;

/**
 * Sends one POST over a connection of its own. Rejects unless the status is 200 and there is no
 * late error.
 */
export function exchange(url: string, path: string, upload?: Upload): Promise<Received> {
  const { hostname, port, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const buffer = Buffer.allocUnsafe(receiveBytes);
    let bytes = 0;
    let head = "";
    let tail = "";
    const receive = (length: number) => {
      if (bytes === 0) head = buffer.toString("latin1", 0, Math.min(length, 100));
      bytes += length;
      tail =
        (length < tailBytes ? tail.slice(-tailBytes) : "") +
        buffer.toString("latin1", Math.max(0, length - tailBytes), length);
      return true;
    };
    const socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: { buffer, callback: receive },
    });
    socket.on("error", reject).on("close", () => {
      if (!head.startsWith("HTTP/1.1 200")) reject(new Error(`${path}: ${head.split("\r\n")[0]}: ${tail}`));
      else if (/^x-stream-error: /im.test(tail)) reject(new Error(`${path} failed late: ${tail}`));
      else resolve({ bytes, tail });
    });
    const length =
      upload === undefined ? "Content-Length: 0" : `Content-Type: ${upload.type}\r\nContent-Length: ${upload.length}`;
    socket.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${length}\r\n\r\n`);
    const pieces = upload?.pieces()[Symbol.iterator]();
    const send = () => {
      for (let next = pieces?.next(); next?.done === false; next = pieces?.next())
        if (!socket.write(next.value)) return;
    };
    socket.on("drain", send);
    send();
  });
}

const maxText = 1000;

/**
 * Resolves to the text of a short response, and to "" for a long one: storing it would cost as much
 * as sending it.
 */
function post(pool: Pool, { path, upload }: { readonly path: string; readonly upload?: Upload }): Promise<string> {
  const headers = upload === undefined ? {} : { "content-type": upload.type };
  const body = upload === undefined ? null : whole(upload);
  return new Promise((resolve, reject) => {
    let status = 0;
    let text = "";
    let length = 0;
    pool.dispatch(
      { method: "POST", path, headers, body },
      {
        onRequestStart() {},
        onResponseStart(_controller, statusCode) {
          status = statusCode;
        },
        onResponseData(_controller, chunk) {
          length += chunk.length;
          if (length < maxText) text += chunk.toString();
        },
        onResponseEnd(_controller, trailers) {
          const failed = status !== 200 || trailers["x-stream-error"] !== undefined;
          if (failed) reject(new Error(`${path}: status ${status}: ${trailers["x-stream-error"] ?? text}`));
          else resolve(length < maxText ? text : "");
        },
        onResponseError(_controller, error) {
          reject(error);
        },
      },
    );
  });
}

/**
 * Sends the calls over `atOnce` connections at a time. Rejects at the first response with another
 * status than 200.
 */
export async function inParallel(
  url: string,
  calls: Iterable<{ readonly path: string; readonly upload?: Upload }>,
  atOnce = 8,
): Promise<readonly string[]> {
  const pool = new Pool(url, { connections: atOnce, pipelining: 1 });
  const waiting = calls[Symbol.iterator]();
  const responses: string[] = [];
  const work = async () => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) {
      responses.push(await post(pool, next.value));
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, work));
    return responses;
  } finally {
    await pool.close();
  }
}
