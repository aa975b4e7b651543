/** The requests that a module has in progress, and what each of them uses. */

/** One request, until its response has been sent or its client has left. */
export class RequestUse {
  /** Seconds of processor time that the process used while this was its oldest request. */
  cpu = 0;
  /** Connections that it has opened to other hosts. */
  connections = 0;
  readonly #account: RequestAccount;
  readonly id: string;
  #isOver = false;

  constructor(account: RequestAccount, id: string) {
    this.#account = account;
    this.id = id;
  }

  /** Its response has begun. */
  responded(): void {
    this.#account.responded(this);
  }

  /** May be called again. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#account.ended(this);
  }
}

export class RequestAccount {
  /** The maximum number of requests in progress at once. */
  readonly most: number;
  /** The requests whose response has not begun, by their ids, the oldest first. */
  readonly #waiting = new Map<string, RequestUse>();
  #inProgress = 0;
  #responses = 0;

  constructor(most: number) {
    this.most = most;
  }

  /** Whether no request is in progress. */
  get isIdle(): boolean {
    return this.#inProgress === 0;
  }

  /** Undefined if the module has as many requests as it may. */
  begin(id: string): RequestUse | undefined {
    if (this.#inProgress >= this.most) return undefined;
    this.#inProgress += 1;
    const use = new RequestUse(this, id);
    this.#waiting.set(id, use);
    return use;
  }

  responded(use: RequestUse): void {
    // A client may have used the id again.
    if (this.#waiting.get(use.id) !== use) return;
    this.#waiting.delete(use.id);
    this.#responses += 1;
  }

  ended(use: RequestUse): void {
    this.#inProgress -= 1;
    this.responded(use);
  }

  /** Returns the request with this id, if its response has not begun. */
  find(id: unknown): RequestUse | undefined {
    return typeof id === "string" ? this.#waiting.get(id) : undefined;
  }

  /**
   * Counts processor time that the process has used since the last call. The kernel does not know
   * for which request, so the time is divided by the number of responses since then: a request that
   * spins lets no other one end. Returns what the oldest request has used.
   */
  countCpu(seconds: number): number {
    const share = seconds / (this.#responses + 1);
    this.#responses = 0;
    const [oldest] = this.#waiting.values();
    if (oldest === undefined) return 0;
    oldest.cpu += share;
    return oldest.cpu;
  }
}
