/**
 * Pin requests, stored in the node's metadata: `requests/<user>/<id>` holds a request, with ids that sort newest first;
 * `cids/<cid>/<key>` is an index of the requests for a CID.
 */
import { randomBytes } from "node:crypto";
import type { MetadataStore, MetadataWriter } from "modhost/node";
import type { Filter } from "./filter.ts";
import type { Wish } from "./pin_object.ts";
import type { PinRequest } from "./pin_request.ts";

type Kept = Omit<PinRequest, "key" | "id">;
export type Change = Partial<Pick<Kept, "status" | "details">>;

export interface Page {
  /** Number of all matching requests, including those on this page. */
  readonly count: number;
  /** Newest first. */
  readonly results: readonly PinRequest[];
}

const folder = "requests/";
/** Sorts after every id with the same time. */
const afterIds = "~";
const MAX_TIME_MS = 2 ** 48 - 1;

/** Encodes a time so that later times sort first. */
const inverted = (moment: number): string =>
  (MAX_TIME_MS - Math.min(Math.max(Math.trunc(moment), 0), MAX_TIME_MS)).toString(16).padStart(12, "0");

const isId = (text: string): boolean => /^[0-9a-f]{28}$/.test(text);

const encode = (kept: Kept): Uint8Array => Buffer.from(JSON.stringify(kept));
const ofUser = (user: string): string => `${encodeURIComponent(user)}/`;

function decode(key: string, bytes: Uint8Array): PinRequest {
  const kept = JSON.parse(Buffer.from(bytes).toString()) as Kept;
  return { ...kept, key, id: key.slice(key.indexOf("/") + 1) };
}

/** Whether there is still work to do for a request. */
export const isOpen = ({ status, leaving }: PinRequest): boolean =>
  leaving !== undefined || status === "queued" || status === "pinning";

export class Requests {
  readonly #store: MetadataStore;

  constructor(store: MetadataStore) {
    this.#store = store;
  }

  /**
   * Adds a request, durably, and removes the one that it replaces in the same transaction. @returns the new request,
   * then the replaced one; empty if the request to be replaced does not exist
   */
  async add(user: string, wish: Wish, replaced?: string): Promise<readonly PinRequest[]> {
    return this.#store.transaction((writer) => {
      const created = Math.max(Date.now(), newestOf(writer, user) + 1);
      const id = inverted(created) + randomBytes(8).toString("hex");
      const key = ofUser(user) + id;
      const kept: Kept = { wish, status: "queued", created };
      let former: PinRequest | undefined;
      if (replaced !== undefined) {
        former = leave(writer, user, replaced, { after: key });
        if (former === undefined) return [];
      }
      writer.put(folder + key, encode(kept));
      writer.put(`cids/${wish.cid}/${key}`, new Uint8Array());
      return [{ ...kept, key, id }, ...(former === undefined ? [] : [former])];
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

  /** The requests of all users for which there is still work to do. */
  async *open(): AsyncGenerator<PinRequest, void, undefined> {
    for await (const [key, bytes] of this.#store.range({ prefix: folder })) {
      const request = decode(key.slice(folder.length), bytes);
      if (isOpen(request)) yield request;
    }
  }

  /** Updates a request. @returns the new state; undefined if it does not exist, has been removed or is settled */
  change(key: string, change: Change): Promise<PinRequest | undefined> {
    return this.#store.transaction((writer) => {
      const request = read(writer, key);
      if (request === undefined || request.leaving !== undefined || !isOpen(request)) return undefined;
      return write(writer, { ...request, ...change });
    });
  }

  /** Whether this is the only request for its CID. */
  async isLast({ key, wish: { cid } }: PinRequest): Promise<boolean> {
    const prefix = `cids/${cid}/`;
    for await (const [found] of this.#store.range({ prefix, limit: 2 })) if (found !== prefix + key) return false;
    return true;
  }

  /** Deletes a request and its index entry. */
  async forget({ key, wish: { cid } }: PinRequest): Promise<void> {
    await this.#store.transaction((writer) => {
      writer.delete(folder + key);
      writer.delete(`cids/${cid}/${key}`);
    });
  }
}

/** Creation time of a user's newest request, which lies in the future if the clock was set back; 0 if there is none. */
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
  const { key, id: _, ...kept } = request;
  writer.put(folder + key, encode(kept));
  return request;
}
