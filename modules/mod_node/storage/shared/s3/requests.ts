/** Requests to one bucket that are repeated until they succeed, or until it is clear that they do not. */
import { Buffer } from "node:buffer";
import { S3Fault, told } from "./faults.ts";
import { newFigures, type RequestFigures, type RequestKind } from "./figures.ts";
import type { Interruptible } from "./objects.ts";
import type { Retries } from "./retries.ts";
import type { S3Answer, S3Request, Transport } from "./transport.ts";
import { parseXml, type XmlElement } from "./xml.ts";

/** Kinds of requests that change the bucket. */
const WRITING: ReadonlySet<RequestKind> = new Set(["put", "part", "upload", "delete"]);

/** What a request is, but for what it is part of. */
export type Asked = Omit<S3Request, "figures" | "signal" | "end">;

/** One attempt of a call: it may send several requests, all of which end with its signal. */
export interface Attempt {
  /** From 1 on. */
  readonly number: number;
  send(request: Asked, kind?: RequestKind): Promise<S3Answer>;
  /** Undefined when there is no such object. */
  find(request: Asked, kind?: RequestKind): Promise<S3Answer | undefined>;
  /** The answer is of no interest. */
  tell(request: Asked, kind?: RequestKind): Promise<Pick<S3Answer, "status" | "headers">>;
  xml(request: Asked): Promise<XmlElement>;
}

export class Requests {
  readonly figures: Record<RequestKind, RequestFigures> = newFigures();
  readonly transport: Transport;
  readonly #retries: Retries;

  constructor(transport: Transport, retries: Retries) {
    this.transport = transport;
    this.#retries = retries;
  }

  /** `kind`: of the requests that do not say another. @throws NodeError, or the reason of the signal */
  async run<T>(kind: RequestKind, { signal }: Interruptible, attempt: (attempt: Attempt) => Promise<T>): Promise<T> {
    try {
      return await this.#retries.run(signal, (number, end) => {
        if (number > 1) this.figures[kind].retries += 1;
        return attempt(this.#attempt(kind, { signal, number, end: number > 1 ? end : undefined }));
      });
    } catch (error) {
      throw error instanceof S3Fault ? told(error, WRITING.has(kind)) : error;
    }
  }

  /** When what fails from now on is given up. */
  get end(): number {
    return performance.now() + this.#retries.patience;
  }

  /** Waits before a read that broke off after it had begun goes on, unless that would be after `end`. @throws as `run` */
  async pause(failures: number, error: unknown, { signal }: Interruptible, end: number): Promise<void> {
    try {
      await this.#retries.pause(failures, error, signal, end);
    } catch (last) {
      throw last instanceof S3Fault ? told(last, false) : last;
    }
  }

  #attempt(
    kind: RequestKind,
    { signal, number, end }: { signal: AbortSignal | undefined; number: number; end: number | undefined },
  ): Attempt {
    const send = (request: Asked, of = kind) =>
      this.transport.send({ ...request, signal, end, figures: this.figures[of] });
    return {
      number,
      send,
      find: (request, of) => send(request, of).catch(undefinedIfMissing),
      async tell(request, of) {
        const { status, headers, drop } = await send(request, of);
        await drop();
        return { status, headers };
      },
      xml: async (request) => {
        const text = await this.transport.text({ ...request, signal, end, figures: this.figures[kind] });
        try {
          return parseXml(text);
        } catch (error) {
          const reason = `${this.transport.describe(request)}: its answer cannot be read: ${(error as Error).message}`;
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
