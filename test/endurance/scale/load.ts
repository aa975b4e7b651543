/** Clients of hosts that work all the time. */
import { eventually } from "#test/support/eventually.ts";
import type { Disturbance } from "./disturbances.ts";
import type { History } from "./history.ts";
import { type Host, isGone, type Works } from "./works.ts";

const WORKERS_A_HOST = 2;

/**
 * An engine fails while clients make so many calls; when it works again, every host takes writes
 * again.
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
  await eventually("every host takes writes again", () => takesWrites(hosts), { every: 100 });
}

async function takesWrites(hosts: readonly Host[]): Promise<boolean> {
  const query = { arg: "/probe", parents: "true" };
  const answers = await Promise.all(hosts.map(({ server }) => server.call("files/mkdir", query)));
  await Promise.all(answers.map((answer) => answer.text()));
  return answers.every(({ ok }) => ok);
}

/** Clients of hosts, each with one call after the other until its host is gone or the load ends. */
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

  /** All clients have ended. */
  get isIdle(): boolean {
    return this.#active === 0;
  }

  /** One more call, beside those of the clients. */
  collect(host: Host): void {
    this.#clients.push(this.#count(() => this.#works.collect(host)));
  }

  /** Resolves when so many more changes were answered with success, or all clients have ended. */
  changes(count: number): Promise<void> {
    const until = this.#history.acknowledged + count;
    return this.#until(`${count} changes are answered`, () => this.#history.acknowledged >= until);
  }

  /** Resolves when so many more calls were made, or all clients have ended. */
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

  /** A client: what it fails with ends all of them, unless its host is gone. */
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
