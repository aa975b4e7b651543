/** Clients of hosts that work all the time. */
import { eventually } from "#test/support/eventually.ts";
import type { Disturbance } from "./disturbances.ts";
import type { History } from "./history.ts";
import { type Host, isGone, type Works } from "./works.ts";

const WORKERS_A_HOST = 2;

/**
 * Lets an engine fail while clients make a number of calls. Resolves when it works again and every
 * host accepts writes.
 */
export async function disturbed(
  { begin, end }: Disturbance,
  calls: number,
  { works, load, hosts }: { readonly works: Works; readonly load: Load; readonly hosts: readonly Host[] },
): Promise<void> {
  works.disturbed = true;
  await begin();
  await load.made(calls);
  await end();
  await eventually("every host accepts writes again", () => takesWrites(hosts), { every: 100 });
}

async function takesWrites(hosts: readonly Host[]): Promise<boolean> {
  const query = { arg: "/probe", parents: "true" };
  const responses = await Promise.all(hosts.map(({ server }) => server.call("files/mkdir", query)));
  await Promise.all(responses.map((response) => response.text()));
  return responses.every(({ ok }) => ok);
}

/**
 * Clients of hosts. Each makes one call after the other until its host has ended or the load is
 * stopped.
 */
export class Load implements AsyncDisposable {
  readonly #works: Works;
  readonly #history: History;
  readonly #clients: Promise<void>[] = [];
  readonly #maxCalls: number;
  #calls = 0;
  #active = 0;
  #failure: unknown;
  #over = false;

  constructor(works: Works, history: History, maxCalls: number) {
    this.#maxCalls = maxCalls;
    this.#works = works;
    this.#history = history;
  }

  on(host: Host): void {
    for (let at = 0; at < WORKERS_A_HOST; at += 1) this.#clients.push(this.#work(host));
  }

  /** Whether all clients have ended. */
  get isIdle(): boolean {
    return this.#active === 0;
  }

  /** Makes a garbage collection in addition to the clients' calls. */
  collect(host: Host): void {
    this.#clients.push(this.#count(() => this.#works.collect(host)));
  }

  /** Resolves after `count` more successful changes, or when all clients have ended. */
  changes(count: number): Promise<void> {
    const until = this.#history.acknowledged + count;
    return this.#until(`${count} changes are acknowledged`, () => this.#history.acknowledged >= until);
  }

  /** Resolves after `count` more calls, or when all clients have ended. */
  made(count: number): Promise<void> {
    const until = this.#calls + count;
    return this.#until(`${count} calls are made`, () => this.#calls >= until);
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    await eventually(what, () => {
      if (this.#failure !== undefined) throw this.#failure;
      return holds() || this.isIdle;
    });
  }

  #work(host: Host): Promise<void> {
    return this.#count(async () => {
      while (!this.#over && this.#calls < this.#maxCalls && this.#history.wrong.length === 0) {
        this.#calls += 1;
        await this.#works.any(host);
      }
    });
  }

  /** Runs a client. Its failure ends all clients, unless its host has ended. */
  async #count(client: () => Promise<void>): Promise<void> {
    this.#active += 1;
    try {
      await client();
    } catch (error) {
      if (!isGone(error)) this.#failure ??= error;
    } finally {
      this.#active -= 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true;
    await Promise.all(this.#clients);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
