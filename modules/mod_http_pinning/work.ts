/** Works in the background: pins what was requested, and releases pins that no request needs. */
import { type Node, parseCid, parsePeerAddress, retryAfter } from "modhost/node";
import type { ModuleLog } from "../../core/types.ts";
import type { Wish } from "./pin_object.ts";
import type { PinRequest } from "./pin_request.ts";
import { isFree, isOpen, type PinWithin, type Requests, type Workers } from "./requests.ts";

export interface WorkParts {
  readonly node: Node;
  readonly requests: Requests;
  readonly log: ModuleLog;
  /** Maximum number of pins that are fetched at the same time. */
  readonly parallel: number;
  /** Milliseconds without progress after which a pin fails. */
  readonly patience: number;
  /**
   * Milliseconds between checks for requests that other hosts of a shared store have left; by
   * default 5 s.
   */
  readonly lookEvery?: number | undefined;
}

const LOOK_EVERY_MS = 5000;

/**
 * Owner of the pins made here, so that they are released with the last request and other pins are
 * not.
 */
const owner = "mod_http_pinning";

/** Maximum length of a pin's name in bytes. A request may have a longer name. */
const MAX_PIN_NAME = 255;

const nameOf = ({ name = "" }: Wish): string => (Buffer.byteLength(name) > MAX_PIN_NAME ? "" : name);

interface Task {
  readonly leave: AbortController;
  readonly ended: Promise<void>;
}

export class Work {
  readonly #parts: WorkParts;
  readonly #waiting = new Set<string>();
  readonly #tasks = new Map<string, Task>();
  /** Key of the replaced request, by the key of the request that replaces it. */
  readonly #replaced = new Map<string, string>();
  /** Running removals, by the key of the request. */
  readonly #removals = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  #begun: Promise<void> | undefined;
  #canFetch = false;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(parts: WorkParts) {
    this.#parts = parts;
  }

  /**
   * Resumes requests left by an earlier process, oldest first, once the node has its network and
   * can find blocks.
   */
  start(): void {
    this.#begun ??= this.#begin();
  }

  async #begin(): Promise<void> {
    const { node, requests, log } = this.#parts;
    try {
      // The node's own module logs why there is no network.
      await node.goOnline().catch(() => undefined);
      this.#canFetch = true;
      await this.#takeAll(requests.open());
    } catch (error) {
      if (!this.#stop.signal.aborted) log.error("Cannot resume pending pin requests: %s", error);
    }
    if (node.lowLevel.shared !== undefined && !this.#stop.signal.aborted) this.#plan();
  }

  async #takeAll(requests: AsyncIterable<PinRequest>): Promise<void> {
    const workers = await this.#workers();
    const left: PinRequest[] = [];
    for await (const request of requests) if (isFree(request, workers)) left.push(request);
    for (const request of left.sort((a, b) => a.created - b.created)) this.take(request);
  }

  /** Returns the sessions that work on requests; undefined if this host has the store to itself. */
  async #workers(): Promise<Workers | undefined> {
    const { shared } = this.#parts.node.lowLevel;
    return shared && { own: shared.session, alive: await shared.sessions() };
  }

  #plan(): void {
    this.#timer = setTimeout(() => {
      this.#looking = this.#look();
    }, this.#parts.lookEvery ?? LOOK_EVERY_MS).unref();
  }

  /**
   * Takes over requests of hosts that have gone, and finishes removals that were requested through
   * another host. Never rejects.
   */
  async #look(): Promise<void> {
    const { requests, log } = this.#parts;
    await this.#takeAll(requests.left()).catch((error) => {
      if (!this.#stop.signal.aborted)
        log.warn("Cannot check for pin requests of other hosts: %s", (error as Error).message);
    });
    if (!this.#stop.signal.aborted) this.#plan();
  }

  /** Schedules the work that the state of a request requires, if any. */
  take(request: PinRequest): void {
    if (this.#stop.signal.aborted || !isOpen(request)) return;
    const { key, leaving } = request;
    if (leaving === undefined) {
      if (!this.#tasks.has(key)) this.#waiting.add(key);
      this.#fill();
      return;
    }
    if (leaving.after !== undefined) this.#replaced.set(leaving.after, key);
    if (this.#removals.has(key)) return;
    const removal = this.#remove(request).catch((error: Error) =>
      this.#parts.log.error("Cannot release the pin of %s: %s", request.wish.cid, error.message),
    );
    this.#removals.set(key, removal);
    void removal.finally(() => this.#removals.delete(key));
  }

  /**
   * Aborts running work. The next start resumes the stored requests, or another host of a shared
   * store takes them over.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    this.#waiting.clear();
    for (const { leave } of this.#tasks.values()) leave.abort();
    await this.#begun;
    await this.#looking;
    await Promise.all([...[...this.#tasks.values()].map(({ ended }) => ended), ...this.#removals.values()]);
    const { node, requests } = this.#parts;
    const { shared } = node.lowLevel;
    // If this fails, other hosts take the requests over when the session has ended.
    if (shared !== undefined) await requests.unclaim(shared.session).catch(() => undefined);
  }

  #fill(): void {
    if (!this.#canFetch) return;
    for (const key of this.#waiting) {
      if (this.#tasks.size >= this.#parts.parallel || this.#stop.signal.aborted) return;
      this.#waiting.delete(key);
      const leave = new AbortController();
      const ended = this.#pin(key, leave.signal)
        .catch((error) => this.#parts.log.error("Cannot continue with a pin request: %s", error))
        .finally(() => {
          this.#tasks.delete(key);
          this.#fill();
        });
      this.#tasks.set(key, { leave, ended });
    }
  }

  async #pin(key: string, left: AbortSignal): Promise<void> {
    const { requests } = this.#parts;
    const request = await requests.claim(key, await this.#workers());
    if (request === undefined) return;
    await this.#meet(request);
    const failed = await this.#fetch(request, left);
    if (left.aborted) return;
    if (failed === undefined) this.#parts.node.lowLevel.announce([parseCid(request.wish.cid)]);
    else await requests.settle(request, { status: "failed", details: failed });
    await this.#settled(key);
  }

  /**
   * Pins and records the result. @returns the reason of a failure; undefined on success or if
   * `left` was aborted
   */
  async #fetch(request: PinRequest, left: AbortSignal): Promise<string | undefined> {
    const { node, requests, patience, log } = this.#parts;
    const { pins } = node.lowLevel;
    const { wish } = request;
    const cid = parseCid(wish.cid);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), patience).unref();
    const signal = AbortSignal.any([left, late.signal]);
    try {
      for (;;) {
        await pins.add(cid, "recursive", { owner, name: nameOf(wish), signal, progress: () => timer.refresh() });
        // If the pin already existed, its last request may have been removed meanwhile, and the pin
        // with it: try again.
        if (await requests.settle(request, { status: "pinned" }, pinOf(node, cid))) return undefined;
      }
    } catch (error) {
      if (left.aborted) return undefined;
      // The failure is temporary: a later check continues with the request.
      if (retryAfter(error) !== undefined) throw error;
      if (late.signal.aborted) return `no data arrived for ${patience / 1000} seconds`;
      if ((error as Error).name !== "NodeError") log.error("pinning %s failed: %s", wish.cid, (error as Error).stack);
      return (error as Error).message;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Connects to the origins of a request, ignoring invalid addresses. Unlike connections made by
   * `swarm.connect`, which the operator asked for, these may be closed by the connection manager
   * like any other.
   */
  async #meet({ wish: { cid, origins = [] } }: PinRequest): Promise<void> {
    const { node, log } = this.#parts;
    if (!node.lowLevel.online || origins.length === 0) return;
    const addresses = origins.flatMap((text) => {
      try {
        return [parsePeerAddress(text)];
      } catch {
        return [];
      }
    });
    const { swarm } = await node.lowLevel.network();
    swarm.connectAll(addresses, (id, { message }) =>
      log.info("Cannot reach the origin %s of %s: %s", id, cid, message),
    );
  }

  /** Continues with a removed request that was waiting for this one to be settled. */
  async #settled(key: string): Promise<void> {
    const waiting = this.#replaced.get(key);
    this.#replaced.delete(key);
    const request = waiting === undefined ? undefined : await this.#parts.requests.at(waiting);
    if (request !== undefined) this.take(request);
  }

  async #remove(request: PinRequest): Promise<void> {
    const { node, requests } = this.#parts;
    const { key, wish, leaving } = request;
    // If another host is fetching the content, that host ends the fetch and finishes the removal in
    // its next check.
    if (!isFree(request, await this.#workers())) return;
    this.#waiting.delete(key);
    const task = this.#tasks.get(key);
    task?.leave.abort();
    await task?.ended;
    // Wait until the replacing request is settled, so that blocks they share are not collected in
    // between.
    const next = leaving?.after === undefined ? undefined : await requests.at(leaving.after);
    if (next !== undefined && isOpen(next)) return;
    const cid = parseCid(wish.cid);
    await requests.forget(request, pinOf(node, cid));
    await this.#settled(key);
  }
}

const pinOf = ({ lowLevel: { pins } }: Pick<Node, "lowLevel">, cid: ReturnType<typeof parseCid>): PinWithin => ({
  isThere: (writer) => pins.isPinnedWithin(writer, cid),
  release: (writer) => pins.releaseWithin(writer, cid, owner),
});
