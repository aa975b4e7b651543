/**
 * Divides work among the hosts of a shared store. Each key belongs to one of the participating
 * hosts with a live session.
 */

import { prefixedStore } from "../metadata/prefixed_store.ts";
import type { MetadataStore } from "../metadata/store.ts";
import type { SharedLog } from "./log.ts";

/** Milliseconds for which a list of participants is reused. */
const QUERY_EVERY_MS = 5000;

/** The owners of keys at one moment. When a host leaves, only its keys get new owners. */
export class Division {
  readonly own: number;
  /** Sessions that participate, in order. */
  readonly members: readonly number[];

  constructor(own: number, members: readonly number[]) {
    this.own = own;
    this.members = members;
  }

  isMine(key: Uint8Array): boolean {
    const hash = hashOf(key);
    let owner = -1;
    let highest = -1;
    for (const member of this.members) {
      const weight = mixed(hash ^ Math.imul(member, 0x9e3779b1));
      if (weight > highest) {
        owner = member;
        highest = weight;
      }
    }
    return owner === this.own;
  }
}

export interface WorkSharesDeps {
  readonly log: Pick<SharedLog, "session" | "sessions">;
  /** Metadata that all hosts share. */
  readonly metadata: MetadataStore;
  /** The kind of work. */
  readonly name: string;
  readonly queryEveryMs?: number | undefined;
}

export class WorkShares {
  readonly #log: WorkSharesDeps["log"];
  readonly #members: MetadataStore;
  readonly #queryEveryMs: number;
  #hasJoined = false;
  /** Session with which this host is registered. */
  #registered: number | undefined;
  #last: { readonly division: Promise<Division>; readonly queriedAt: number } | undefined;

  constructor({ log, metadata, name, queryEveryMs = QUERY_EVERY_MS }: WorkSharesDeps) {
    this.#log = log;
    this.#members = prefixedStore(metadata, `hosts/${name}/`);
    this.#queryEveryMs = queryEveryMs;
  }

  /** Registers this host for a share of the work. Others learn of it with their next query. */
  join(): void {
    if (this.#hasJoined) return;
    this.#hasJoined = true;
    this.#last = undefined;
  }

  /**
   * Gives up the share of this host. Never rejects: if the store is unreachable, the share ends
   * with the session.
   */
  async leave(): Promise<void> {
    if (!this.#hasJoined) return;
    this.#hasJoined = false;
    this.#last = undefined;
    const session = this.#registered;
    this.#registered = undefined;
    if (session === undefined) return;
    await this.#members.transaction((writer) => writer.delete(String(session))).catch(() => undefined);
  }

  /**
   * Returns the current owners of keys, which may be a few seconds old.
   * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST
   */
  division(): Promise<Division> {
    const now = performance.now();
    if (this.#last === undefined || now - this.#last.queriedAt >= this.#queryEveryMs) {
      const division = this.#query();
      this.#last = { division, queriedAt: now };
      division.catch(() => {
        this.#last = undefined;
      });
    }
    return this.#last.division;
  }

  async #query(): Promise<Division> {
    const own = this.#log.session;
    const alive = new Set(await this.#log.sessions());
    if (this.#hasJoined && this.#registered !== own) {
      await this.#members.transaction((writer) => {
        writer.put(String(own), new Uint8Array());
        for (const [member] of [...writer.range()])
          if (!alive.has(Number(member)) && Number(member) !== own) writer.delete(member);
      });
      this.#registered = own;
    }
    const members = (await Array.fromAsync(this.#members.range())).map(([member]) => Number(member));
    return new Division(
      own,
      members.filter((member) => alive.has(member) || member === own).sort((a, b) => a - b),
    );
  }
}

/** Computes the FNV-1a hash. */
function hashOf(key: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of key) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

/**
 * Mixes the bits of a number. The result is not negative, and each of its bits depends on the whole
 * number.
 */
function mixed(number: number): number {
  let bits = number ^ (number >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
