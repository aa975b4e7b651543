/** Requests to one bucket, which are retried until they succeed or a retry cannot help. */
import { Buffer } from "node:buffer";
import { errorOf, S3Fault } from "./faults.ts";
import { newMetrics, type RequestKind, type RequestMetrics } from "./metrics.ts";
import type { Interruptible } from "./objects.ts";
import type { Retries } from "./retries.ts";
import type { S3Request, S3Response, Transport } from "./transport.ts";
import { parseXml, type XmlElement } from "./xml.ts";

/** Kinds of requests that change the bucket. */
const WRITING: ReadonlySet<RequestKind> = new Set(["put", "part", "upload", "delete"]);

/** A request without the fields that its call adds. */
export type RequestDetails = Omit<S3Request, "metrics" | "signal" | "end">;

/** One attempt of a call. It may send several requests, which the signal of the call aborts. */
export interface Attempt {
  /** Number of the attempt, starting with 1. */
  readonly number: number;
  send(request: RequestDetails, kind?: RequestKind): Promise<S3Response>;
  /** Sends a request; undefined when the object does not exist. */
  find(request: RequestDetails, kind?: RequestKind): Promise<S3Response | undefined>;
  /** Sends a request and discards the body of the response. */
  sendAndDiscard(request: RequestDetails, kind?: RequestKind): Promise<Pick<S3Response, "status" | "headers">>;
  xml(request: RequestDetails): Promise<XmlElement>;
}

export class Requests {
  readonly metrics: Record<RequestKind, RequestMetrics> = newMetrics();
  readonly transport: Transport;
  readonly #retries: Retries;

  constructor(transport: Transport, retries: Retries) {
    this.transport = transport;
    this.#retries = retries;
  }

  /**
   * Runs `attempt` until it succeeds. `kind` is the default kind of its requests.
   * @throws NodeError, or the reason of the signal
   */
  async run<T>(kind: RequestKind, { signal }: Interruptible, attempt: (attempt: Attempt) => Promise<T>): Promise<T> {
    try {
      return await this.#retries.run(signal, (number, end) => {
        if (number > 1) this.metrics[kind].retries += 1;
        return attempt(this.#attempt(kind, { signal, number, end: number > 1 ? end : undefined }));
      });
    } catch (error) {
      throw error instanceof S3Fault ? errorOf(error, WRITING.has(kind)) : error;
    }
  }

  /** The time when calls that fail from now on are given up. */
  get end(): number {
    return performance.now() + this.#retries.patience;
  }

  /**
   * Waits before a read that broke off is continued, unless it would continue after `end`.
   * @throws the errors of `run`
   */
  async pause(failures: number, error: unknown, { signal }: Interruptible, end: number): Promise<void> {
    try {
      await this.#retries.pause(failures, error, signal, end);
    } catch (last) {
      throw last instanceof S3Fault ? errorOf(last, false) : last;
    }
  }

  #attempt(
    kind: RequestKind,
    { signal, number, end }: { signal: AbortSignal | undefined; number: number; end: number | undefined },
  ): Attempt {
    const send = (request: RequestDetails, of = kind) =>
      this.transport.send({ ...request, signal, end, metrics: this.metrics[of] });
    return {
      number,
      send,
      find: (request, of) => send(request, of).catch(undefinedIfMissing),
      async sendAndDiscard(request, of) {
        const { status, headers, drop } = await send(request, of);
        await drop();
        return { status, headers };
      },
      xml: async (request) => {
        const text = await this.transport.text({ ...request, signal, end, metrics: this.metrics[kind] });
        try {
          return parseXml(text);
        } catch (error) {
          const reason = `${this.transport.describe(request)}: cannot read the response: ${(error as Error).message}`;
          throw new S3Fault(reason, { code: "BrokenAnswer", cause: error });
        }
      },
    };
  }
}

function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof S3Fault && error.status === 404 && error.code !== "NoSuchBucket") return undefined;
  throw error;
}

export const isStatus = (error: unknown, status: number): boolean =>
  error instanceof S3Fault && error.status === status;

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
