/**
 * Pin requests, stored in the node's metadata. `requests/<user>/<id>` contains a request, with ids
 * that sort newest first. `cids/<cid>/<key>` is an index of the requests for a CID, and
 * `open/<key>` is an index of unfinished requests. Hosts that share a store have the same requests,
 * and one of them works on each.
 */
import { randomBytes } from "node:crypto";
import { type MetadataStore, type MetadataWriter, prefixedStore, prefixedWriter, readJsonEntry } from "modhost/node";
import type { Filter } from "./filter.ts";
import type { Wish } from "./pin_object.ts";
import type { PinRequest } from "./pin_request.ts";

type StoredRequest = Omit<PinRequest, "key" | "id">;
export type Change = Partial<Pick<StoredRequest, "status" | "details">>;

export interface Page {
  /** Number of all matching requests, including those on this page. */
  readonly count: number;
  /** The matching requests on this page, newest first. */
  readonly results: readonly PinRequest[];
}

const PREFIX = "modules/http_pinning/";
const folder = "requests/";
const openFolder = "open/";
/** In place of an id, sorts after all ids with the same time. */
const afterIds = "~";
const MAX_TIME_MS = 2 ** 48 - 1;

/** Encodes a time so that later times sort first. */
const inverted = (moment: number): string =>
  (MAX_TIME_MS - Math.min(Math.max(Math.trunc(moment), 0), MAX_TIME_MS)).toString(16).padStart(12, "0");

const isId = (text: string): boolean => /^[0-9a-f]{28}$/.test(text);

const encode = (stored: StoredRequest): Uint8Array => Buffer.from(JSON.stringify(stored));
const ofUser = (user: string): string => `${encodeURIComponent(user)}/`;

function decode(key: string, bytes: Uint8Array): PinRequest {
  const stored = readJsonEntry(PREFIX + folder + key, bytes, (json) => json as StoredRequest);
  return { ...stored, key, id: key.slice(key.indexOf("/") + 1) };
}

/** Whether a request is unfinished. */
export const isOpen = ({ status, leaving }: PinRequest): boolean =>
  leaving !== undefined || status === "queued" || status === "pinning";

/** The sessions that work on requests; undefined if this host has the store to itself. */
export interface Workers {
  readonly own: number;
  /** Sessions that are alive. */
  readonly alive: readonly number[];
}

/** Whether this host may work on a request, because no other live session does. */
export const isFree = ({ worker }: PinRequest, workers: Workers | undefined): boolean =>
  workers === undefined || worker === undefined || worker === workers.own || !workers.alive.includes(worker);

/** Access to a pin within a transaction of the whole metadata. */
export interface PinWithin {
  isThere(writer: MetadataWriter): boolean;
  release(writer: MetadataWriter): void;
}

export class Requests {
  readonly #metadata: MetadataStore;
  readonly #store: MetadataStore;

  /** `metadata` is the whole metadata store of the node. */
  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
    this.#store = prefixedStore(metadata, PREFIX);
  }

  /**
   * Adds a request, durably, and removes the one that it replaces in the same transaction. @returns
   * the new request, then the replaced one; empty if the request to be replaced does not exist
   */
  async add(user: string, wish: Wish, replaced?: string, worker?: number): Promise<readonly PinRequest[]> {
    return this.#store.transaction((writer) => {
      const created = Math.max(Date.now(), newestOf(writer, user) + 1);
      const id = inverted(created) + randomBytes(8).toString("hex");
      const key = ofUser(user) + id;
      const stored: StoredRequest = { wish, status: "queued", created, ...(worker !== undefined && { worker }) };
      let previous: PinRequest | undefined;
      if (replaced !== undefined) {
        previous = leave(writer, user, replaced, { after: key });
        if (previous === undefined) return [];
      }
      write(writer, { ...stored, key, id });
      writer.put(`cids/${wish.cid}/${key}`, new Uint8Array());
      return [{ ...stored, key, id }, ...(previous === undefined ? [] : [previous])];
    });
  }

  /** Removes a request from the callers' view. @returns undefined if there is no such request */
  leave(user: string, id: string): Promise<PinRequest | undefined> {
    return this.#store.transaction((writer) => leave(writer, user, id, {}));
  }

  /** Undefined if there is no such request, or it has been removed. */
  async get(user: string, id: string): Promise<PinRequest | undefined> {
    const found = isId(id) ? await this.at(ofUser(user) + id) : undefined;
    return found?.leaving === undefined ? found : undefined;
  }

  async at(key: string): Promise<PinRequest | undefined> {
    const bytes = await this.#store.get(folder + key);
    return bytes && decode(key, bytes);
  }

  async list(user: string, { before, after, limit, fits }: Filter): Promise<Page> {
    const prefix = folder + ofUser(user);
    const results: PinRequest[] = [];
    let count = 0;
    const from = before === undefined ? {} : { after: prefix + inverted(before) + afterIds };
    for await (const [key, bytes] of this.#store.range({ prefix, ...from })) {
      const request = decode(key.slice(folder.length), bytes);
      if (after !== undefined && request.created <= after) break;
      if (request.leaving !== undefined || !fits(request)) continue;
      count += 1;
      if (results.length < limit) results.push(request);
    }
    return { count, results };
  }

  /**
   * Yields the unfinished requests of all users, including those of earlier versions, which had no
   * index.
   */
  async *open(): AsyncGenerator<PinRequest, void, undefined> {
    for await (const [key, bytes] of this.#store.range({ prefix: folder })) {
      const request = decode(key.slice(folder.length), bytes);
      if (isOpen(request)) yield request;
    }
  }

  /** Yields the unfinished requests by the index alone. */
  async *left(): AsyncGenerator<PinRequest, void, undefined> {
    for await (const [key] of this.#store.range({ prefix: openFolder })) {
      const request = await this.at(key.slice(openFolder.length));
      if (request !== undefined && isOpen(request)) yield request;
    }
  }

  /**
   * Begins to fetch. @returns the new state; undefined if the request does not exist, has been
   * removed, is settled, or another host is working on it
   */
  claim(key: string, workers: Workers | undefined): Promise<PinRequest | undefined> {
    return this.#store.transaction((writer) => {
      const request = readUnsettled(writer, key);
      if (request === undefined || !isFree(request, workers)) return undefined;
      return write(writer, { ...request, status: "pinning", worker: workers?.own });
    });
  }

  /**
   * Releases the requests that this session has claimed, so that other hosts can take them over.
   */
  async unclaim(own: number): Promise<void> {
    const keys: string[] = [];
    for await (const { key, worker } of this.left()) if (worker === own) keys.push(key);
    if (keys.length === 0) return;
    await this.#store.transaction((writer) => {
      for (const key of keys) {
        const request = readUnsettled(writer, key);
        if (request?.worker === own) write(writer, { ...request, worker: undefined });
      }
    });
  }

  /**
   * Ends the work on a request, unless it was removed, is settled, or another host has taken it
   * over. `pin` is checked in the same transaction. @param claimed the result of `claim` @returns
   * false if the pin does not exist; true in all other cases
   */
  settle(claimed: PinRequest, change: Change, pin?: PinWithin): Promise<boolean> {
    const { key, worker } = claimed;
    return this.#metadata.transaction((all) => {
      if (pin?.isThere(all) === false) return false;
      const writer = prefixedWriter(all, PREFIX);
      const request = readUnsettled(writer, key);
      if (request?.worker === worker && request !== undefined)
        write(writer, { ...request, ...change, worker: undefined });
      // Another host considered this session dead, took the request over, and has removed it.
      if (!writer.has(folder + key) && isLast(writer, claimed)) pin?.release(all);
      return true;
    });
  }

  /**
   * Deletes a request and its index entries, and releases its pin if no other request has its CID.
   */
  async forget(request: PinRequest, { release }: Pick<PinWithin, "release">): Promise<void> {
    const { key, wish } = request;
    await this.#metadata.transaction((all) => {
      const writer = prefixedWriter(all, PREFIX);
      if (!writer.has(folder + key)) return;
      if (isLast(writer, request)) release(all);
      for (const each of [folder + key, `cids/${wish.cid}/${key}`, openFolder + key]) writer.delete(each);
    });
  }
}

/** Whether no other request has its CID. */
function isLast(writer: MetadataWriter, { key, wish: { cid } }: PinRequest): boolean {
  const prefix = `cids/${cid}/`;
  return [...writer.range({ prefix, limit: 2 })].every(([found]) => found === prefix + key);
}

/**
 * Creation time of a user's newest request, which lies in the future if the clock was set back; 0
 * if there is none.
 */
function newestOf(writer: MetadataWriter, user: string): number {
  for (const [key, bytes] of writer.range({ prefix: folder + ofUser(user), limit: 1 })) {
    return decode(key.slice(folder.length), bytes).created;
  }
  return 0;
}

function read(writer: MetadataWriter, key: string): PinRequest | undefined {
  const bytes = writer.get(folder + key);
  return bytes && decode(key, bytes);
}

function readUnsettled(writer: MetadataWriter, key: string): PinRequest | undefined {
  const request = read(writer, key);
  return request === undefined || request.leaving !== undefined || !isOpen(request) ? undefined : request;
}

function leave(
  writer: MetadataWriter,
  user: string,
  id: string,
  leaving: NonNullable<PinRequest["leaving"]>,
): PinRequest | undefined {
  const request = isId(id) ? read(writer, ofUser(user) + id) : undefined;
  if (request === undefined || request.leaving !== undefined) return undefined;
  return write(writer, { ...request, leaving });
}

function write(writer: MetadataWriter, request: PinRequest): PinRequest {
  const { key, id: _, ...stored } = request;
  writer.put(folder + key, encode(stored));
  if (isOpen(request)) writer.put(openFolder + key, new Uint8Array());
  else writer.delete(openFolder + key);
  return request;
}
