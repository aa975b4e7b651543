/**
 * Keeps the certificates of a running host current: switches to new files, and warns before
 * certificates expire.
 */
import type { Changes } from "../operations/changes.ts";
import { Challenges } from "../tls/acme/challenges.ts";
import { AcmeKeeper } from "../tls/acme/index.ts";
import { ExpiryWarnings } from "../tls/expiry.ts";
import type { Certificates } from "../tls/index.ts";
import { CertificateWatch } from "../tls/watch.ts";
import type { AcmeChallengeEvent, TlsConnectionEvent } from "../types.ts";
import { reasonOf } from "../util/errors.ts";

/** How often the expiry of certificates is checked, in milliseconds. */
const EXPIRY_MS = 3_600_000;

export interface CertificateUpkeepDeps {
  readonly certificates: Certificates;
  /** Whether this process orders certificates by ACME. */
  readonly orders: boolean;
  readonly changes: Changes;
  /** Runs a change in its turn. */
  enqueue(operation: () => Promise<void>): Promise<void>;
  announce(event: string, data: unknown): void;
  /** Adds a hook; returns a function that removes it. */
  hook(event: string, handler: (data: never) => unknown): () => void;
  readonly log: { info(text: string, ...values: unknown[]): void; warn(text: string, ...values: unknown[]): void };
}

export class CertificateUpkeep {
  readonly #deps: CertificateUpkeepDeps;
  readonly #watch: CertificateWatch;
  readonly #warnings: ExpiryWarnings;
  readonly #challenges = new Challenges();
  readonly #acme: AcmeKeeper;
  #unhook: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(deps: CertificateUpkeepDeps) {
    const { certificates, log } = deps;
    this.#deps = deps;
    const warn = (text: string, ...values: unknown[]) => log.warn(text, ...values);
    this.#warnings = new ExpiryWarnings(warn);
    this.#watch = new CertificateWatch({
      look: () => certificates.compare(),
      swap: (names) => this.#refresh("file watch", names),
      warn,
    });
    this.#acme = new AcmeKeeper({
      challenges: this.#challenges,
      renewed: (name) => this.#refresh("acme", [name]),
      log,
    });
    certificates.orders = () => this.#acme.orders();
  }

  /** Starts to follow the certificates; called again after each change of the configuration. */
  follow(): void {
    // A change of the configuration may end after the stop has begun.
    if (this.#isStopped) return;
    void this.#watch.follow(this.#deps.certificates.files());
    const acme = this.#deps.orders ? this.#deps.certificates.acme : undefined;
    if (acme !== undefined && this.#unhook.length === 0) this.#acceptChallenges();
    this.#acme.follow(acme);
    this.#timer ??= setInterval(() => void this.#hourly(), EXPIRY_MS).unref();
    this.#warnings.look(this.#deps.certificates.validity());
  }

  /** Stops the upkeep; resolves when no order is in progress. */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.#watch.close();
    clearInterval(this.#timer);
    for (const unhook of this.#unhook) unhook();
    return this.#acme.stop();
  }

  #acceptChallenges(): void {
    const { hook } = this.#deps;
    const challenges = this.#challenges;
    this.#unhook = [
      hook("acme-challenge", ({ token }: AcmeChallengeEvent) => challenges.responseTo(token)),
      hook("tls-connection", ({ socket, serve }: TlsConnectionEvent) => {
        if (!challenges.takesConnections) return undefined;
        challenges.take(socket, serve);
        return true;
      }),
    ];
  }

  async #refresh(by: string, names: readonly string[]): Promise<void> {
    const { certificates, changes, enqueue, announce, log } = this.#deps;
    const what = `serve other certificates for ${names.join(", ")}`;
    await changes.make({ what, by }, (progress) =>
      enqueue(async () => {
        const { changed } = await certificates.refresh();
        for (const name of changed) progress.step(`another certificate for ${name}`);
        if (changed.length === 0) return;
        announce("certificates-changed", { names: changed });
        progress.inForce();
        for (const { name, expires } of certificates.states()) {
          if (changed.includes(name)) log.info("Serving a new certificate for %s, valid until %s", name, expires);
        }
        this.#warnings.look(certificates.validity());
      }),
    ).work;
  }

  async #hourly(): Promise<void> {
    const { certificates, log } = this.#deps;
    try {
      const own = certificates.states().find(({ source }) => source === "self-signed");
      if (own !== undefined && certificates.isSelfSignedEnding()) await this.#refresh("host", [own.name]);
      this.#warnings.look(certificates.validity());
    } catch (error) {
      log.warn("Cannot check when the certificates expire: %s", reasonOf(error));
    }
  }
}
