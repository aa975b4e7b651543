/**
 * A client of one pinning service (IPFS Pinning Service API 1.0). The key is only sent in the
 * authorization header.
 */

import { parseCid } from "../../formats/cid/text.ts";
import { parseJson } from "../../storage/repo/json.ts";
import { readUpTo } from "../../util/async/read_all.ts";
import { failure, type NodeError } from "../../util/errors.ts";
import { fetchErrorText } from "../../util/fetch_error.ts";
import { quote } from "../../util/go/text.ts";
import { type PinStatusWord, type RemotePin, type RemotePinPage, readFailure, readPage, readPin } from "./responses.ts";

export interface ServiceAccess {
  readonly endpoint: string;
  readonly key: string;
}

/** Selects the pins that match all given filters. */
export interface PinQuery {
  readonly cids?: readonly string[];
  readonly name?: string | undefined;
  readonly statuses?: readonly PinStatusWord[];
}

/** An object to pin: the `Pin` of the API. */
export interface PinObject {
  readonly cid: string;
  readonly name?: string | undefined;
  /** Addresses of peers that have the blocks, with their ids. */
  readonly origins: readonly string[];
}

/** Number of pins on a page. */
const PAGE_SIZE = 10;
/** Maximum size of a response in bytes. */
const MAX_RESPONSE_SIZE = 4 * 1024 * 1024;

/** Sends requests; tests may replace it. */
export type Fetch = typeof globalThis.fetch;

interface ServiceRequest {
  readonly path?: string;
  readonly query?: URLSearchParams;
  readonly body?: object;
  readonly signal: AbortSignal;
}

interface ServiceResponse {
  readonly status: number;
  readonly statusText: string;
  readonly isJson: boolean;
  readonly text: string;
}

/**
 * Sends requests to the service. All methods reject with a NodeError that has go-ipfs's text: the
 * service's reason and details, its status if the response cannot be read, or why there was no
 * response. If the signal aborts, they reject with its reason.
 */
export class PinningClient {
  readonly #access: ServiceAccess;
  readonly #fetch: Fetch;

  constructor(access: ServiceAccess, fetch: Fetch = globalThis.fetch) {
    this.#access = access;
    this.#fetch = fetch;
  }

  async add(pin: PinObject, signal: AbortSignal): Promise<RemotePin> {
    return this.#read(await this.#request("POST", { body: bodyOf(pin), signal }), readPin);
  }

  /** Replaces a pin. */
  async replace(requestId: string, pin: PinObject, signal: AbortSignal): Promise<RemotePin> {
    return this.#read(await this.#request("POST", { path: pathOf(requestId), body: bodyOf(pin), signal }), readPin);
  }

  async get(requestId: string, signal: AbortSignal): Promise<RemotePin> {
    return this.#read(await this.#request("GET", { path: pathOf(requestId), signal }), readPin);
  }

  async remove(requestId: string, signal: AbortSignal): Promise<void> {
    this.#requireSuccess(await this.#request("DELETE", { path: pathOf(requestId), signal }));
  }

  /** Resolves to the number of matching pins. */
  async count(query: PinQuery, signal: AbortSignal): Promise<number> {
    return (await this.#page(query, { limit: 1, signal })).count;
  }

  /**
   * Yields pins, the newest first, page by page. As in go-ipfs, the next page begins before the
   * whole second of the last pin. If that would skip pins of the same second, the page is requested
   * again with the fraction.
   */
  async *list(query: PinQuery, signal: AbortSignal): AsyncGenerator<RemotePin, void, undefined> {
    let page = await this.#page(query, { limit: PAGE_SIZE, signal });
    for (;;) {
      yield* page.pins;
      const last = page.pins.at(-1);
      const left = page.count - page.pins.length;
      if (last === undefined || left <= 0) return;
      const next = (before: string) => this.#page(query, { limit: PAGE_SIZE, before, signal });
      page = await next(last.created.replace(/\.\d+/, ""));
      if (page.count < left && last.created.includes(".")) page = await next(last.created);
      if (page.pins.some(({ requestId }) => requestId === last.requestId)) {
        throw failure("PINNING_SERVICE_FAILED", { reason: "remote pinning service repeats its pages" });
      }
    }
  }

  async #page(
    { cids = [], name = "", statuses = [] }: PinQuery,
    { limit, before, signal }: { readonly limit: number; readonly before?: string; readonly signal: AbortSignal },
  ): Promise<RemotePinPage> {
    const query = new URLSearchParams();
    if (before !== undefined) query.set("before", before);
    if (cids.length > 0) query.set("cid", cids.map(normalized).join(","));
    query.set("limit", String(limit));
    if (name !== "") query.set("name", name);
    if (statuses.length > 0) query.set("status", statuses.join(","));
    return this.#read(await this.#request("GET", { query, signal }), readPage);
  }

  async #request(method: string, { path = "", query, body, signal }: ServiceRequest): Promise<ServiceResponse> {
    const search = query === undefined ? "" : `?${query}`;
    const url = `${this.#access.endpoint}/pins${path}${search}`;
    const verb = `${method.charAt(0)}${method.slice(1).toLowerCase()}`;
    const empty = (reason: string, cause?: unknown) =>
      failure(
        "PINNING_SERVICE_FAILED",
        { reason: `empty response from remote pinning service: ${verb} ${quote(redacted(url))}: ${reason}` },
        cause,
      );
    const headers: Record<string, string> = {
      accept: "application/json",
      "user-agent": "go-pinning-service-http-client",
      authorization: this.#authorization(() => empty("the key cannot be sent in a header")),
    };
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      const response = await this.#fetch(withoutCredentials(url), {
        method,
        headers,
        signal,
        body: body === undefined ? null : JSON.stringify(body),
      });
      const bytes = response.body === null ? new Uint8Array() : await readUpTo(response.body, MAX_RESPONSE_SIZE);
      return {
        status: response.status,
        statusText: response.statusText,
        isJson: /json/i.test(response.headers.get("content-type") ?? ""),
        text: Buffer.from(bytes).toString("utf8"),
      };
    } catch (error) {
      signal.throwIfAborted();
      throw empty(fetchErrorText(error as Error), error);
    }
  }

  /**
   * Returns the header with the key as UTF-8. A key that a header cannot contain is refused here,
   * because `fetch` would repeat the key in its error.
   */
  #authorization(refusal: () => NodeError): string {
    const { key } = this.#access;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a header cannot hold them
    if (/[\x00-\x1f\x7f]/.test(key)) throw refusal();
    return `Bearer ${Buffer.from(key, "utf8").toString("latin1")}`;
  }

  #requireSuccess({ status, statusText, isJson, text }: ServiceResponse): void {
    if (status < 300) return;
    if (!isJson) throw unreadable(status, "undefined response type");
    const { reason, details } = readFailure(jsonOf(text));
    throw failure("PINNING_SERVICE_FAILED", {
      reason: `reason: ${quote(reason)}, details: ${quote(details)}: ${status} ${statusText}`,
    });
  }

  #read<T>(response: ServiceResponse, read: (value: unknown) => T): T {
    this.#requireSuccess(response);
    const { status, isJson, text } = response;
    if (!isJson) throw unreadable(status, "undefined response type");
    try {
      return read(parseJson(text));
    } catch (error) {
      throw unreadable(status, (error as Error).message, error);
    }
  }
}

const unreadable = (status: number, reason: string, cause?: unknown) =>
  failure(
    "PINNING_SERVICE_FAILED",
    { reason: `remote pinning service returned http error ${status}: ${reason}` },
    cause,
  );

/** Returns undefined for text that is not valid JSON. */
function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns a CID of version 1 in base32; one of version 0 stays as it is. */
const normalized = (cid: string): string => parseCid(cid).toString();

const bodyOf = ({ cid, name = "", origins }: PinObject): object => ({
  cid: normalized(cid),
  ...(name === "" ? {} : { name }),
  ...(origins.length === 0 ? {} : { origins }),
});

const pathOf = (requestId: string): string => `/${encodeURIComponent(requestId)}`;

/** Replaces a password with stars, as Go writes URLs. */
const redacted = (url: string): string => url.replace(/^(\w+:\/\/[^/:@]*):[^/@]*@/, "$1:***@");

/** Removes user and password, which `fetch` refuses; the key is sent in a header instead. */
function withoutCredentials(url: string): URL {
  const parsed = new URL(url);
  parsed.username = "";
  parsed.password = "";
  return parsed;
}
