/** Background work: pins what was requested, and releases pins that no request needs any more. */
import { type Node, parseCid, parsePeerAddress } from "modhost/node";
import type { ModuleLog } from "../../core/types.ts";
import type { PinRequest } from "./pin_request.ts";
import { isOpen, type Requests } from "./requests.ts";

export interface WorkParts {
  readonly node: Node;
  readonly requests: Requests;
  readonly log: ModuleLog;
  /** Maximum number of pins that are fetched at the same time. */
  readonly parallel: number;
  /** Milliseconds without progress after which a pin fails. */
  readonly patience: number;
}

/** Owner of the pins made here, so that they are released with the last request and other pins are not. */
const owner = "mod_http_pinning";

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
  readonly #removals = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #begun: Promise<void> | undefined;
  #canFetch = false;
  /** Resolves when the last step that reads or changes pins and requests together has finished. */
  #steps: Promise<unknown> = Promise.resolve();

  constructor(parts: WorkParts) {
    this.#parts = parts;
  }

  /** Resumes requests left by an earlier process, oldest first, once the node has its network and can find blocks. */
  start(): void {
    this.#begun ??= this.#begin();
  }

  async #begin(): Promise<void> {
    const { node, requests, log } = this.#parts;
    try {
      // The node's own module logs why there is no network.
      await node.goOnline().catch(() => undefined);
      this.#canFetch = true;
      const left: PinRequest[] = [];
      for await (const request of requests.open()) left.push(request);
      for (const request of left.sort((a, b) => a.created - b.created)) this.take(request);
    } catch (error) {
      if (!this.#stop.signal.aborted) log.error("what was asked for before is not gone on with: %s", error);
    }
  }

  /** Schedules the work that the state of a request calls for, if any. */
  take(request: PinRequest): void {
    if (this.#stop.signal.aborted || !isOpen(request)) return;
    const { key, leaving } = request;
    if (leaving === undefined) {
      if (!this.#tasks.has(key)) this.#waiting.add(key);
      this.#fill();
      return;
    }
    if (leaving.after !== undefined) this.#replaced.set(leaving.after, key);
    const removal = this.#remove(request).catch((error: Error) =>
      this.#parts.log.error("the pin of %s stays: %s", request.wish.cid, error.message),
    );
    this.#removals.add(removal);
    void removal.finally(() => this.#removals.delete(removal));
  }

  /** Aborts running work. The stored requests stay as they are, and the next start resumes them. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#waiting.clear();
    for (const { leave } of this.#tasks.values()) leave.abort();
    await this.#begun;
    await Promise.all([...[...this.#tasks.values()].map(({ ended }) => ended), ...this.#removals]);
  }

  #fill(): void {
    if (!this.#canFetch) return;
    for (const key of this.#waiting) {
      if (this.#tasks.size >= this.#parts.parallel || this.#stop.signal.aborted) return;
      this.#waiting.delete(key);
      const leave = new AbortController();
      const ended = this.#pin(key, leave.signal)
        .catch((error) => this.#parts.log.error("a pin is not gone on with: %s", error))
        .finally(() => {
          this.#tasks.delete(key);
          this.#fill();
        });
      this.#tasks.set(key, { leave, ended });
    }
  }

  async #pin(key: string, left: AbortSignal): Promise<void> {
    const { requests } = this.#parts;
    const request = await requests.change(key, { status: "pinning" });
    if (request === undefined) return;
    await this.#meet(request);
    const failed = await this.#fetch(request, left);
    if (left.aborted) return;
    if (failed === undefined) this.#parts.node.lowLevel.announce([parseCid(request.wish.cid)]);
    else await requests.change(key, { status: "failed", details: failed });
    await this.#settled(key);
  }

  /** Pins and records the result. @returns the reason of a failure; undefined on success or if `left` was aborted */
  async #fetch({ key, wish }: PinRequest, left: AbortSignal): Promise<string | undefined> {
    const { node, requests, patience, log } = this.#parts;
    const { pins } = node.lowLevel;
    const cid = parseCid(wish.cid);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), patience).unref();
    const signal = AbortSignal.any([left, late.signal]);
    try {
      for (;;) {
        await pins.add(cid, "recursive", { owner, signal, progress: () => timer.refresh() });
        // If the pin already existed, its last request may have been removed meanwhile, and the pin with it: try again.
        const isDone = await this.#step(async () => {
          if ((await pins.mode(cid)) !== "recursive") return false;
          await requests.change(key, { status: "pinned" });
          return true;
        });
        if (isDone) return undefined;
      }
    } catch (error) {
      if (left.aborted) return undefined;
      if (late.signal.aborted) return `nothing of it arrived for ${patience / 1000} seconds`;
      if ((error as Error).name !== "NodeError") log.error("pinning %s failed: %s", wish.cid, (error as Error).stack);
      return (error as Error).message;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Connects to the origins of a request, ignoring invalid addresses. Unlike connections made by `swarm.connect`, which
   * the operator asked for, these may be closed by the connection manager like any other.
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
      log.info("the origin %s of %s is not reached: %s", id, cid, message),
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
    this.#waiting.delete(key);
    const task = this.#tasks.get(key);
    task?.leave.abort();
    await task?.ended;
    // Wait until the replacing request is settled, so that blocks they share are not collected in between.
    const next = leaving?.after === undefined ? undefined : await requests.at(leaving.after);
    if (next !== undefined && isOpen(next)) return;
    const cid = parseCid(wish.cid);
    await this.#step(async () => {
      if (await requests.isLast(request)) await node.lowLevel.pins.release(cid, owner);
      await requests.forget(request);
    });
    await this.#settled(key);
  }

  /** Runs steps one at a time. */
  #step<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#steps.then(run);
    this.#steps = done.catch(() => undefined);
    return done;
  }
}
