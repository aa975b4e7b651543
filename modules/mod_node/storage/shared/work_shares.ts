/** Work that hosts of a shared store share out: each key is for one of those that take part, as long as its session is alive. */

import { prefixedStore } from "../metadata/prefixed_store.ts";
import type { MetadataStore } from "../metadata/store.ts";
import type { SharedLog } from "./log.ts";

/** Milliseconds for which an answer of who is alive is used again. */
const ASK_EVERY_MS = 5000;

/** Who had which keys at one moment. When a host goes, only its keys go to others. */
export class Division {
  readonly own: number;
  /** Sessions that take part, in order. */
  readonly members: readonly number[];

  constructor(own: number, members: readonly number[]) {
    this.own = own;
    this.members = members;
  }

  isMine(key: Uint8Array): boolean {
    const hash = hashOf(key);
    let [owner, highest] = [-1, -1];
    for (const member of this.members) {
      const weight = mixed(hash ^ Math.imul(member, 0x9e3779b1));
      if (weight > highest) [owner, highest] = [member, weight];
    }
    return owner === this.own;
  }
}

export interface WorkSharesDeps {
  readonly log: Pick<SharedLog, "session" | "sessions">;
  /** Of all hosts. */
  readonly metadata: MetadataStore;
  /** Of the kind of work. */
  readonly name: string;
  readonly askEveryMs?: number | undefined;
}

export class WorkShares {
  readonly #log: WorkSharesDeps["log"];
  readonly #members: MetadataStore;
  readonly #askEveryMs: number;
  #hasJoined = false;
  /** Session under which it is a member. */
  #noted: number | undefined;
  #last: { readonly division: Promise<Division>; readonly asked: number } | undefined;

  constructor({ log, metadata, name, askEveryMs = ASK_EVERY_MS }: WorkSharesDeps) {
    this.#log = log;
    this.#members = prefixedStore(metadata, `hosts/${name}/`);
    this.#askEveryMs = askEveryMs;
  }

  /** From now on this host has a share, which others know of with their next question. */
  join(): void {
    if (this.#hasJoined) return;
    this.#hasJoined = true;
    this.#last = undefined;
  }

  /** Its share goes to the others. Never rejects: without the store that happens when the session ends. */
  async leave(): Promise<void> {
    if (!this.#hasJoined) return;
    this.#hasJoined = false;
    this.#last = undefined;
    const session = this.#noted;
    this.#noted = undefined;
    if (session === undefined) return;
    await this.#members.transaction((writer) => writer.delete(String(session))).catch(() => undefined);
  }

  /** Who has which keys, as of a few seconds ago. @throws NodeError STORE_UNAVAILABLE, SESSION_LOST */
  division(): Promise<Division> {
    const now = performance.now();
    if (this.#last === undefined || now - this.#last.asked >= this.#askEveryMs) {
      const division = this.#ask();
      this.#last = { division, asked: now };
      division.catch(() => {
        this.#last = undefined;
      });
    }
    return this.#last.division;
  }

  async #ask(): Promise<Division> {
    const own = this.#log.session;
    const alive = new Set(await this.#log.sessions());
    if (this.#hasJoined && this.#noted !== own) {
      await this.#members.transaction((writer) => {
        writer.put(String(own), new Uint8Array());
        for (const [member] of [...writer.range()])
          if (!alive.has(Number(member)) && Number(member) !== own) writer.delete(member);
      });
      this.#noted = own;
    }
    const members = (await Array.fromAsync(this.#members.range())).map(([member]) => Number(member));
    return new Division(
      own,
      members.filter((member) => alive.has(member) || member === own).sort((a, b) => a - b),
    );
  }
}

/** FNV-1a. */
function hashOf(key: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of key) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

/** Not negative; each bit depends on all of the number. */
function mixed(number: number): number {
  let bits = number ^ (number >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
