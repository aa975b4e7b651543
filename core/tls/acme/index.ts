/** Orders certificates by ACME, and renews them before they expire. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { CertificateOrder } from "../../types.ts";
import { reasonOf } from "../../util/errors.ts";
import type { Challenges } from "./challenges.ts";
import { AcmeClient, type ChallengeType } from "./client.ts";
import { accountKey, type FailedTries, readFailedTries, readStored, writeFailedTries, writeStored } from "./files.ts";
import { pauseAfter, renewalTime } from "./schedule.ts";

export interface AcmeSettings {
  /** URL of the authority's directory. */
  readonly directory: string;
  readonly email: string | undefined;
  /** Whether the operator accepts the authority's terms. */
  readonly agree: boolean;
  /** Names that get one certificate each. */
  readonly hosts: readonly string[];
  readonly challenge: ChallengeType;
  /**
   * PEM file with the CA certificates for the authority's server, if the system does not know them.
   */
  readonly caFile: string | undefined;
  readonly eab: { readonly id: string; readonly key: string } | undefined;
  /** The folder in which keys and certificates are stored. */
  readonly folder: string;
}

export interface AcmeKeeperDeps {
  readonly challenges: Challenges;
  /** Called when the files of a name have a new certificate. */
  renewed(name: string): Promise<void>;
  readonly log: { info(text: string, ...values: unknown[]): void; warn(text: string, ...values: unknown[]): void };
  readonly pollMs?: number;
}

/**
 * Maximum number of milliseconds between checks; renewal windows are requested from authorities as
 * often.
 */
const MAX_WAIT_MS = 6 * 3_600_000;

const NO_FAILURE: FailedTries = { failures: 0, error: undefined, due: 0 };

export class AcmeKeeper {
  readonly #deps: AcmeKeeperDeps;
  #settings: AcmeSettings | undefined;
  #abort = new AbortController();
  #work = new Map<string, FailedTries>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends, in milliseconds since 1970. */
  #due = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: AcmeKeeperDeps) {
    this.#deps = deps;
  }

  /**
   * Switches to these settings; orders that were started with other settings are aborted. It does
   * nothing if no host is named. Failures with the same settings are remembered across restarts, so
   * that a server that keeps restarting does not use up the authority's rate limit.
   */
  follow(settings: AcmeSettings | undefined): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#end();
    this.#abort = new AbortController();
    this.#settings = settings;
    this.#work = new Map();
    if (settings === undefined) return;
    const digest = digestOf(settings);
    for (const name of settings.hosts) {
      this.#work.set(name, readFailedTries(settings.folder, name, digest) ?? NO_FAILURE);
    }
    this.#begin(settings, 0);
  }

  /** Returns the state of the order for each name. */
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

  /** Orders one name after another, as authorities prefer. */
  async #round(settings: AcmeSettings): Promise<void> {
    const { signal } = this.#abort;
    const isCurrent = () => this.#settings === settings && !signal.aborted;
    if (!isCurrent()) return;
    let client: AcmeClient | undefined;
    for (const [name, work] of this.#work) {
      if (!isCurrent() || Date.now() < work.due) continue;
      try {
        client ??= await this.#client(settings, signal);
        this.#work.set(name, { ...NO_FAILURE, due: await this.#keep(name, client, settings) });
      } catch (cause) {
        if (!isCurrent()) return;
        const failures = work.failures + 1;
        const error = reasonOf(cause);
        const pause = pauseAfter(failures, cause);
        this.#work.set(name, { failures, error, due: Date.now() + pause });
        this.#deps.log.warn(
          "%s issued no certificate for %s: %s. The next attempt is in %s",
          new URL(settings.directory).host,
          name,
          error,
          minutesText(pause),
        );
      }
      await this.#save(name, settings);
    }
    if (!isCurrent()) return;
    const next = Math.min(...[...this.#work.values()].map(({ due }) => due));
    this.#begin(settings, Math.max(1000, Math.min(MAX_WAIT_MS, next - Date.now())));
  }

  async #save(name: string, settings: AcmeSettings): Promise<void> {
    const tries = this.#work.get(name) ?? NO_FAILURE;
    try {
      await writeFailedTries(settings.folder, name, digestOf(settings), tries);
    } catch (error) {
      this.#deps.log.warn("Cannot save when to order the certificate for %s again: %s", name, reasonOf(error));
    }
  }

  /** Orders the certificate of a name if it is due. Resolves to the time of the next check. */
  async #keep(name: string, client: AcmeClient, settings: AcmeSettings): Promise<number> {
    const { challenges, renewed, log } = this.#deps;
    const { folder, directory, challenge, agree } = settings;
    const stored = await readStored(folder, name);
    const own = stored?.directory === directory ? stored : undefined;
    const { renewalId, requestFor } = await import("./requests.ts");
    const id = own === undefined ? undefined : renewalId(own.certificate);
    if (own !== undefined) {
      // If the authority cannot be reached, the rule of two thirds of the lifetime applies.
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
    await writeStored(folder, name, { certificate, key, directory });
    log.info("%s issued a certificate for %s", new URL(directory).host, name);
    await renewed(name);
    const fresh = await readStored(folder, name);
    return Math.min(fresh === undefined ? 0 : renewalTime(fresh), Date.now() + MAX_WAIT_MS);
  }

  async #client({ folder, directory, email, eab, caFile }: AcmeSettings, signal: AbortSignal): Promise<AcmeClient> {
    const { pollMs } = this.#deps;
    const key = await accountKey(folder, directory);
    const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8");
    return new AcmeClient({ directory, key, email, eab, ca, signal, ...(pollMs === undefined ? {} : { pollMs }) });
  }
}

/**
 * Returns a digest of everything that an order depends on except the names: after a change, a
 * failed order is retried at once.
 */
function digestOf({ directory, email, agree, challenge, caFile, eab }: AcmeSettings): string {
  const text = JSON.stringify([directory, email, agree, challenge, caFile, eab]);
  return createHash("sha256").update(text).digest("hex");
}

function minutesText(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / 60_000);
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}
