/** Requests to a certificate authority: nonces, problems, and when to come again. */
import { request as requestHttp } from "../../util/node_http.ts";
import { packageVersion } from "../../util/package.ts";

/** The longest answer that is read, bytes: certificates with their chains have a few kilobytes. */
const MAX_ANSWER = 1 << 20;
const TIMEOUT_MS = 30_000;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface TransportOptions {
  /** Certificates in PEM that are trusted in place of the system's. */
  readonly ca?: string | undefined;
  readonly signal: AbortSignal;
}

/** What the authority does not do, in its own words. */
export class AcmeProblem extends Error {
  /** Such as `rateLimited`: the end of the problem's type (RFC 8555, 6.7). */
  readonly type: string;
  readonly status: number;
  /** Milliseconds that the authority asks for before the next try. */
  readonly retryAfter: number | undefined;

  constructor(answer: Answer) {
    const { type, detail } = jsonOf(answer) as { type?: string; detail?: string };
    super(detail ?? type ?? `it answered ${answer.status}`);
    this.type = type?.replace(/.*:/, "") ?? "";
    this.status = answer.status;
    this.retryAfter = retryAfterOf(answer);
  }
}

/** One request. @throws Error when nothing comes back, or too much */
export function ask(method: string, url: string, { ca, signal }: TransportOptions, body?: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const isSecure = new URL(url).protocol === "https:";
  const headers: Record<string, string> = { "User-Agent": `modhost/${packageVersion()}` };
  if (body !== undefined) headers["Content-Type"] = "application/jose+json";
  const options = { method, headers, signal, timeout: TIMEOUT_MS, agent: false, ...(ca === undefined ? {} : { ca }) };
  const request = (isSecure ? process.getBuiltinModule("node:https").request : requestHttp)(
    url,
    options,
    (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size > MAX_ANSWER) response.destroy(new Error("its answer is too long"));
      });
      response.once("error", reject);
      response.once("end", () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text: Buffer.concat(chunks).toString() });
      });
    },
  );
  request.once("timeout", () => request.destroy(new Error(`nothing came from ${url} within ${TIMEOUT_MS / 1000} s`)));
  request.once("error", reject);
  request.end(body);
  return promise;
}

export function jsonOf({ text }: Answer): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

export function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Milliseconds from now on: the header has seconds or a date. */
export function retryAfterOf(answer: Answer): number | undefined {
  const text = headerOf(answer, "retry-after");
  if (text === undefined) return undefined;
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) ? Math.max(0, milliseconds) : undefined;
}
