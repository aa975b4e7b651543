/** Calls a node under test, and checks what must be true for every response. */
import { Agent, request } from "node:http";

export interface NodeResponse {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
  /** Values of a response with the type JSON. */
  readonly values: readonly unknown[];
  /** Message of a failure before or after the first byte. */
  readonly message: string | undefined;
}

/** A name may occur more than once. */
export type FuzzQuery = readonly (readonly [name: string, value: string])[];

export interface Body {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Timeout of a call in milliseconds: all calls are small. */
const patience = 20_000;

export class FuzzClient implements Disposable {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(port: number) {
    this.#port = port;
  }

  /** @throws Error for a response that no call may get */
  async call(command: string, query: FuzzQuery | string = [], body?: Body): Promise<NodeResponse> {
    const text =
      typeof query === "string" ? query : query.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
    const response = await this.#ask(`/api/v0/${command}?${text}`, body);
    const why = fault(response);
    if (why !== undefined) throw new Error(`${command}?${text.slice(0, 300)}: ${why}`);
    return response;
  }

  #ask(path: string, body: Body | undefined): Promise<NodeResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<NodeResponse>();
    const headers = body && { "content-type": body.type, "content-length": body.bytes.length };
    const sent = request(
      { host: "127.0.0.1", port: this.#port, path, method: "POST", agent: this.#agent, headers: headers ?? {} },
      async (incoming) => {
        try {
          const bytes = Buffer.concat(await incoming.toArray());
          resolve(parseResponse(incoming.statusCode as number, bytes, incoming.headers, incoming.trailers));
        } catch (error) {
          reject(error);
        }
      },
    );
    sent.setTimeout(patience, () => sent.destroy(new Error(`${path.slice(0, 300)} hangs`)));
    sent.on("error", reject);
    sent.end(body?.bytes);
    return promise;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;

function parseResponse(status: number, bytes: Buffer, headers: Fields, trailers: Fields): NodeResponse {
  const type = String(headers["content-type"] ?? "");
  const lines = type === "application/json" ? String(bytes).split("\n") : [];
  const values = lines.filter((line) => line !== "").map((line): unknown => JSON.parse(line));
  const early =
    status === 200 ? undefined : ((values[0] as { Message?: string } | undefined)?.Message ?? String(bytes));
  const late = trailers["x-stream-error"];
  return { status, type, bytes, values, message: typeof late === "string" ? late : early };
}

/** Checks the statuses of the contract, and the headers and body for each. */
function fault({ status, type, bytes, values, message }: NodeResponse): string | undefined {
  if (message?.match(/RangeError|TypeError|ReferenceError|\n\s+at |call stack|undefined|\[object/)) {
    return `${status} with the text of a defect: ${message.slice(0, 300)}`;
  }
  if (status === 200 || status === 404) return undefined;
  if (status === 400) return bytes.length > 0 ? undefined : "400 without a reason";
  if (status !== 500) return `status ${status}: ${String(bytes).slice(0, 200)}`;
  const [error] = values as readonly { Message?: unknown; Code?: unknown; Type?: unknown }[];
  // If another encoding was requested, the response has it.
  if (values.length === 0 && type !== "application/json") return bytes.length > 0 ? undefined : "500 without a reason";
  const whole = typeof error?.Message === "string" && error.Type === "error" && typeof error.Code === "number";
  return whole && values.length === 1 ? undefined : `500 without an error in JSON: ${String(bytes).slice(0, 200)}`;
}

/** Makes a multipart body. Latin-1 text stands for the same bytes. */
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

/** Makes a body with one file, under the name that the command expects. */
export const upload = (content: Uint8Array | string, name = "file"): Body =>
  multipart([
    {
      head: `Content-Disposition: form-data; name="file"; filename="${encodeURIComponent(name)}"\r\nContent-Type: application/octet-stream`,
      content: Buffer.from(content as string),
    },
  ]);
