/** A client of one pinning service (IPFS Pinning Service API 1.0). The key is sent in one header, and nowhere else. */

import { parseCid } from "../../formats/cid/text.ts";
import { parseJson } from "../../storage/repo/json.ts";
import { readUpTo } from "../../util/async/read_all.ts";
import { NodeError } from "../../util/errors.ts";
import { fetchErrorText } from "../../util/fetch_error.ts";
import { quote } from "../../util/go/text.ts";
import { type PinStatusWord, type RemotePin, type RemotePinPage, readFailure, readPage, readPin } from "./responses.ts";

export interface ServiceAccess {
  readonly endpoint: string;
  readonly key: string;
}

/** Selects the pins that match every filter given. */
export interface PinQuery {
  readonly cids?: readonly string[];
  readonly name?: string | undefined;
  readonly statuses?: readonly PinStatusWord[];
}

/** What is to be pinned: the `Pin` of the API. */
export interface PinObject {
  readonly cid: string;
  readonly name?: string | undefined;
  /** Addresses of peers that have the blocks, with their ids. */
  readonly origins: readonly string[];
}

/** Pins on a page. */
const PAGE_SIZE = 10;
/** Bytes of a response. */
const MAX_RESPONSE_SIZE = 4 * 1024 * 1024;

/** How requests are made; a test may give another. */
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
 * All methods reject with a NodeError in the words of go-ipfs: the service's reason and details, its status when the
 * response cannot be read, or why there was no response; and with the signal's reason.
 */
export class PinningClient {
  readonly #access: ServiceAccess;
  readonly #fetch: Fetch;

  constructor(access: ServiceAccess, fetch: Fetch = globalThis.fetch) {
    this.#access = access;
    this.#fetch = fetch;
  }

  async add(pin: PinObject, signal: AbortSignal): Promise<RemotePin> {
    return this.#read(await this.#ask("POST", { body: bodyOf(pin), signal }), readPin);
  }

  /** Replaces a pin. */
  async replace(requestId: string, pin: PinObject, signal: AbortSignal): Promise<RemotePin> {
    return this.#read(await this.#ask("POST", { path: pathOf(requestId), body: bodyOf(pin), signal }), readPin);
  }

  async get(requestId: string, signal: AbortSignal): Promise<RemotePin> {
    return this.#read(await this.#ask("GET", { path: pathOf(requestId), signal }), readPin);
  }

  async remove(requestId: string, signal: AbortSignal): Promise<void> {
    this.#requireSuccess(await this.#ask("DELETE", { path: pathOf(requestId), signal }));
  }

  /** How many pins match. */
  async count(query: PinQuery, signal: AbortSignal): Promise<number> {
    return (await this.#page(query, { limit: 1, signal })).count;
  }

  /**
   * The newest first, page by page. As in go-ipfs the next page begins before the whole second of the last pin; where
   * that would skip pins of the same second, it is requested again with the fraction.
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
        throw new NodeError("remote pinning service repeats its pages");
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
    return this.#read(await this.#ask("GET", { query, signal }), readPage);
  }

  async #ask(method: string, { path = "", query, body, signal }: ServiceRequest): Promise<ServiceResponse> {
    const search = query === undefined ? "" : `?${query}`;
    const url = `${this.#access.endpoint}/pins${path}${search}`;
    const verb = `${method.charAt(0)}${method.slice(1).toLowerCase()}`;
    const empty = (reason: string, cause?: unknown) =>
      new NodeError(`empty response from remote pinning service: ${verb} ${quote(redacted(url))}: ${reason}`, {
        cause,
      });
    const headers: Record<string, string> = {
      accept: "application/json",
      "user-agent": "go-pinning-service-http-client",
      authorization: this.#authorization(() => empty("the key cannot be sent in a header")),
    };
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      const answer = await this.#fetch(withoutCredentials(url), {
        method,
        headers,
        signal,
        body: body === undefined ? null : JSON.stringify(body),
      });
      const bytes = answer.body === null ? new Uint8Array() : await readUpTo(answer.body, MAX_RESPONSE_SIZE);
      return {
        status: answer.status,
        statusText: answer.statusText,
        isJson: /json/i.test(answer.headers.get("content-type") ?? ""),
        text: Buffer.from(bytes).toString("utf8"),
      };
    } catch (error) {
      signal.throwIfAborted();
      throw empty(fetchErrorText(error as Error), error);
    }
  }

  /** The key as UTF-8. Refused here if a header cannot hold it: `fetch` would repeat the key in its error. */
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
    throw new NodeError(`reason: ${quote(reason)}, details: ${quote(details)}: ${status} ${statusText}`);
  }

  #read<T>(answered: ServiceResponse, read: (value: unknown) => T): T {
    this.#requireSuccess(answered);
    const { status, isJson, text } = answered;
    if (!isJson) throw unreadable(status, "undefined response type");
    try {
      return read(parseJson(text));
    } catch (error) {
      throw unreadable(status, (error as Error).message, error);
    }
  }
}

const unreadable = (status: number, reason: string, cause?: unknown) =>
  new NodeError(`remote pinning service returned http error ${status}: ${reason}`, { cause });

/** Undefined for text that is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Version 1 in base32, version 0 as it is. */
const normalized = (cid: string): string => parseCid(cid).toString();

const bodyOf = ({ cid, name = "", origins }: PinObject): object => ({
  cid: normalized(cid),
  ...(name === "" ? {} : { name }),
  ...(origins.length === 0 ? {} : { origins }),
});

const pathOf = (requestId: string): string => `/${encodeURIComponent(requestId)}`;

/** With stars for a password, as Go writes URLs. */
const redacted = (url: string): string => url.replace(/^(\w+:\/\/[^/:@]*):[^/@]*@/, "$1:***@");

/** Without user and password, which `fetch` refuses; the key goes in the header instead. */
function withoutCredentials(url: string): URL {
  const parsed = new URL(url);
  parsed.username = "";
  parsed.password = "";
  return parsed;
}
