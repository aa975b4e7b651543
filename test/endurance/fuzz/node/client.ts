/** Calls of a node under test, judged by what must hold for every answer. */
import { Agent, request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
  /** Of an answer that says that it is JSON. */
  readonly values: readonly unknown[];
  /** Of a failure, early or late. */
  readonly message: string | undefined;
}

/** A name may come more than once. */
export type Query = readonly (readonly [name: string, value: string])[];

export interface Body {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Milliseconds within which every call has its answer: whatever is asked is small. */
const patience = 20_000;

export class Client implements Disposable {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(port: number) {
    this.#port = port;
  }

  /** @throws Error for an answer that no call may get */
  async call(command: string, query: Query | string = [], body?: Body): Promise<Answer> {
    const text =
      typeof query === "string" ? query : query.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
    const answer = await this.#ask(`/api/v0/${command}?${text}`, body);
    const why = fault(answer);
    if (why !== undefined) throw new Error(`${command}?${text.slice(0, 300)}: ${why}`);
    return answer;
  }

  #ask(path: string, body: Body | undefined): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const headers = body && { "content-type": body.type, "content-length": body.bytes.length };
    const asked = request(
      { host: "127.0.0.1", port: this.#port, path, method: "POST", agent: this.#agent, headers: headers ?? {} },
      async (incoming) => {
        try {
          const bytes = Buffer.concat(await incoming.toArray());
          resolve(answerOf(incoming.statusCode as number, bytes, incoming.headers, incoming.trailers));
        } catch (error) {
          reject(error);
        }
      },
    );
    asked.setTimeout(patience, () => asked.destroy(new Error(`${path.slice(0, 300)} hangs`)));
    asked.on("error", reject);
    asked.end(body?.bytes);
    return promise;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;

function answerOf(status: number, bytes: Buffer, headers: Fields, trailers: Fields): Answer {
  const type = String(headers["content-type"] ?? "");
  const lines = type === "application/json" ? String(bytes).split("\n") : [];
  const values = lines.filter((line) => line !== "").map((line): unknown => JSON.parse(line));
  const early =
    status === 200 ? undefined : ((values[0] as { Message?: string } | undefined)?.Message ?? String(bytes));
  const late = trailers["x-stream-error"];
  return { status, type, bytes, values, message: typeof late === "string" ? late : early };
}

/** Statuses of the contract, and what goes with them. */
function fault({ status, type, bytes, values, message }: Answer): string | undefined {
  if (message?.match(/RangeError|TypeError|ReferenceError|\n\s+at |call stack|undefined|\[object/)) {
    return `${status} with the text of a defect: ${message.slice(0, 300)}`;
  }
  if (status === 200 || status === 404) return undefined;
  if (status === 400) return bytes.length > 0 ? undefined : "400 without a reason";
  if (status !== 500) return `answered ${status}: ${String(bytes).slice(0, 200)}`;
  const [error] = values as readonly { Message?: unknown; Code?: unknown; Type?: unknown }[];
  // Asked for in another encoding, it comes in that.
  if (values.length === 0 && type !== "application/json") return bytes.length > 0 ? undefined : "500 without a reason";
  const whole = typeof error?.Message === "string" && error.Type === "error" && typeof error.Code === "number";
  return whole && values.length === 1 ? undefined : `500 without an error in JSON: ${String(bytes).slice(0, 200)}`;
}

/** The same bytes as Latin-1 text are pieces of a body. */
export function multipart(parts: readonly { readonly head: string; readonly content: Uint8Array }[]): Body {
  const boundary = "fuzz-boundary";
  const pieces = parts.flatMap(({ head, content }) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`, "latin1"),
    content,
    Buffer.from("\r\n"),
  ]);
  const bytes = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, bytes };
}

/** One file, whatever the command calls it. */
export const upload = (content: Uint8Array | string, name = "file"): Body =>
  multipart([
    {
      head: `Content-Disposition: form-data; name="file"; filename="${encodeURIComponent(name)}"\r\nContent-Type: application/octet-stream`,
      content: Buffer.from(content as string),
    },
  ]);
