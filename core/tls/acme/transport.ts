/** Sends requests to a certificate authority, and reads its problems and retry times. */
import { request as requestHttp } from "../../util/node_http.ts";
import { packageVersion } from "../../util/package.ts";

/** Maximum size of a response in bytes: certificates with their chains have a few kilobytes. */
const MAX_RESPONSE_BYTES = 1 << 20;
const TIMEOUT_MS = 30_000;

export interface AcmeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface TransportOptions {
  /** PEM certificates that are trusted instead of the system's. */
  readonly ca?: string | undefined;
  readonly signal: AbortSignal;
}

/** An error response of the authority, in its own words. */
export class AcmeProblem extends Error {
  /** The end of the problem's type, such as `rateLimited` (RFC 8555, 6.7). */
  readonly type: string;
  readonly status: number;
  /** Milliseconds that the authority requests before the next attempt. */
  readonly retryAfter: number | undefined;

  constructor(response: AcmeResponse) {
    const { type, detail } = jsonOf(response) as { type?: string; detail?: string };
    super(detail ?? type ?? `it responded with ${response.status}`);
    this.type = type?.replace(/.*:/, "") ?? "";
    this.status = response.status;
    this.retryAfter = retryAfterOf(response);
  }
}

/** Sends one request. @throws Error if there is no response, or too large a one */
export function sendRequest(
  method: string,
  url: string,
  { ca, signal }: TransportOptions,
  body?: string,
): Promise<AcmeResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<AcmeResponse>();
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
        if (size > MAX_RESPONSE_BYTES) response.destroy(new Error("its response is too long"));
      });
      response.once("error", reject);
      response.once("end", () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text: Buffer.concat(chunks).toString() });
      });
    },
  );
  request.once("timeout", () => request.destroy(new Error(`no response from ${url} within ${TIMEOUT_MS / 1000} s`)));
  request.once("error", reject);
  request.end(body);
  return promise;
}

export function jsonOf({ text }: AcmeResponse): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

export function headerOf({ headers }: AcmeResponse, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Returns the milliseconds from now on; the header contains seconds or a date. */
export function retryAfterOf(response: AcmeResponse): number | undefined {
  const text = headerOf(response, "retry-after");
  if (text === undefined) return undefined;
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) ? Math.max(0, milliseconds) : undefined;
}
