/** Orders certificates by ACME, and renews them before they end. */
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { CertificateOrder } from "../../types.ts";
import { reasonOf } from "../../util/errors.ts";
import type { Challenges } from "./challenges.ts";
import { AcmeClient, type ChallengeType } from "./client.ts";
import { accountKey, readKept, writeKept } from "./files.ts";
import { pauseAfter, renewalTime } from "./schedule.ts";

export interface AcmeSettings {
  /** URL of the authority's directory. */
  readonly directory: string;
  readonly email: string | undefined;
  /** Whoever operates the server agrees to the authority's terms. */
  readonly agree: boolean;
  /** Names to have a certificate each. */
  readonly hosts: readonly string[];
  readonly challenge: ChallengeType;
  /** PEM file of the certificates that the authority's own is signed by, where the system does not know it. */
  readonly caFile: string | undefined;
  readonly eab: { readonly id: string; readonly key: string } | undefined;
  /** Where keys and certificates are kept. */
  readonly folder: string;
}

export interface AcmeKeeperDeps {
  readonly challenges: Challenges;
  /** There is another certificate for a name, in its files. */
  renewed(name: string): Promise<void>;
  readonly log: { info(text: string, ...values: unknown[]): void; warn(text: string, ...values: unknown[]): void };
  readonly pollMs?: number;
}

/** The longest time between looks at what is due, milliseconds; what authorities say of renewals is asked as often. */
const MAX_WAIT_MS = 6 * 3_600_000;

interface Work {
  failures: number;
  /** Why the last try failed. */
  error: string | undefined;
  /** Milliseconds since 1970. */
  due: number;
}

export class AcmeKeeper {
  readonly #deps: AcmeKeeperDeps;
  #settings: AcmeSettings | undefined;
  #abort = new AbortController();
  #work = new Map<string, Work>();
  #timer: NodeJS.Timeout | undefined;
  /** The timer's end, milliseconds since 1970. */
  #due = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: AcmeKeeperDeps) {
    this.#deps = deps;
  }

  /** Keeps these from now on; what was begun by other settings is given up. Nothing where no host is named. */
  follow(settings: AcmeSettings | undefined): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#end();
    this.#abort = new AbortController();
    this.#settings = settings;
    this.#work = new Map((settings?.hosts ?? []).map((name) => [name, { failures: 0, error: undefined, due: 0 }]));
    if (settings === undefined) return;
    this.#begin(settings, 0);
  }

  /** How it stands with each name. */
  orders(): Map<string, CertificateOrder> {
    const authority = this.#settings === undefined ? "" : new URL(this.#settings.directory).host;
    const orders = [...this.#work].map(([name, { failures, error, due }]): [string, CertificateOrder] => {
      const next_try = new Date(Math.max(due, this.#due)).toISOString();
      return [name, { authority, next_try, failures, ...(error === undefined ? {} : { error }) }];
    });
    return new Map(orders);
  }

  async stop(): Promise<void> {
    this.#settings = undefined;
    this.#end();
    await this.#running;
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  #begin(settings: AcmeSettings, wait: number): void {
    this.#due = Date.now() + wait;
    this.#timer = setTimeout(() => {
      this.#running = this.#running.then(() => this.#round(settings));
    }, wait).unref();
  }

  /** One name after the other, as authorities want it. */
  async #round(settings: AcmeSettings): Promise<void> {
    const { signal } = this.#abort;
    const isCurrent = () => this.#settings === settings && !signal.aborted;
    if (!isCurrent()) return;
    let client: AcmeClient | undefined;
    for (const [name, work] of this.#work) {
      if (!isCurrent() || Date.now() < work.due) continue;
      try {
        client ??= await this.#client(settings, signal);
        work.due = await this.#keep(name, client, settings);
        work.failures = 0;
        work.error = undefined;
      } catch (error) {
        if (!isCurrent()) return;
        work.failures += 1;
        work.error = reasonOf(error);
        const pause = pauseAfter(work.failures, error);
        work.due = Date.now() + pause;
        this.#deps.log.warn(
          "%s gave no certificate for %s: %s. It is asked again in %s",
          new URL(settings.directory).host,
          name,
          work.error,
          minutesText(pause),
        );
      }
    }
    if (!isCurrent()) return;
    const next = Math.min(...[...this.#work.values()].map(({ due }) => due));
    this.#begin(settings, Math.max(1000, Math.min(MAX_WAIT_MS, next - Date.now())));
  }

  /** Orders the certificate of a name if it is time. Gives when to look at it again. */
  async #keep(name: string, client: AcmeClient, settings: AcmeSettings): Promise<number> {
    const { challenges, renewed, log } = this.#deps;
    const { folder, directory, challenge, agree } = settings;
    const kept = await readKept(folder, name);
    const own = kept?.directory === directory ? kept : undefined;
    const { renewalId, requestFor } = await import("./requests.ts");
    const id = own === undefined ? undefined : renewalId(own.certificate);
    if (own !== undefined) {
      // An authority that cannot be asked changes nothing: two thirds of the time are the rule.
      const window = id === undefined ? undefined : await client.renewalWindow(id).catch(() => undefined);
      const time = renewalTime(own, window);
      if (time > Date.now()) return Math.min(time, Date.now() + MAX_WAIT_MS);
    }
    if (!agree) {
      const terms = await client.terms();
      throw new Error(`set acme_agree: true if you agree to its terms${terms === undefined ? "" : ` at ${terms}`}`);
    }
    const { key, csr } = await requestFor(name);
    const certificate = await client.order({
      name,
      challenge,
      csr,
      replaces: id,
      present: (proof) => challenges.present(proof),
    });
    await writeKept(folder, name, { certificate, key, directory });
    log.info("%s issued a certificate for %s", new URL(directory).host, name);
    await renewed(name);
    const fresh = await readKept(folder, name);
    return Math.min(fresh === undefined ? 0 : renewalTime(fresh), Date.now() + MAX_WAIT_MS);
  }

  async #client({ folder, directory, email, eab, caFile }: AcmeSettings, signal: AbortSignal): Promise<AcmeClient> {
    const { pollMs } = this.#deps;
    const key = await accountKey(folder, directory);
    const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8");
    return new AcmeClient({ directory, key, email, eab, ca, signal, ...(pollMs === undefined ? {} : { pollMs }) });
  }
}

function minutesText(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000);
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}
