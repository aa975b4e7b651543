/** Disturbs the engines of a store while hosts work. */
import { atRandom, FaultyHttp, type HttpFault, INTERNAL_ERROR, SLOW_DOWN } from "#test/support/engines/faulty_http.ts";
import { Postgres } from "#test/support/engines/postgres.ts";
import { type StoreSettings, sharedStore } from "#test/support/engines/shared_store.ts";
import type { Random } from "../fuzz/random.ts";

export interface Disturbance {
  readonly name: string;
  begin(): Promise<void>;
  /** Resolves when the engine works again. */
  end(): Promise<void>;
}

const FAULTS: readonly HttpFault[] = [SLOW_DOWN, INTERNAL_ERROR, "reset", "lost", "truncated"];
/** Share of faulty requests. */
const FAULTY = 0.2;
const SLOW_MS = 300;
/**
 * Seconds for which objects of merged segments remain. It is low, so that hosts meet objects that
 * no longer exist.
 */
const GRACE_SECONDS = 10;
/** Bytes per second. */
const TRICKLE = 1024;

/**
 * The engines of a store: PostgreSQL with a standby for which commits wait, and an S3 server behind
 * a proxy.
 */
export class DisturbedEngines implements AsyncDisposable {
  readonly settings: StoreSettings;
  readonly #proxy: FaultyHttp;
  readonly #standby: Postgres;
  #sql: Postgres;
  /** Disturbances that have not occurred in this turn yet. */
  #left: Disturbance[] = [];

  private constructor(settings: StoreSettings, proxy: FaultyHttp, sql: Postgres, standby: Postgres) {
    this.settings = settings;
    this.#proxy = proxy;
    this.#sql = sql;
    this.#standby = standby;
  }

  static async start(): Promise<DisturbedEngines> {
    const { settings } = await sharedStore();
    const proxy = await FaultyHttp.start(settings.endpoint);
    const sql = await Postgres.start();
    const standby = await sql.standby({ synchronous: true });
    const url = `postgres://postgres@127.0.0.1:${sql.port},127.0.0.1:${standby.port}/postgres?schema=scale`;
    return new DisturbedEngines(
      { ...settings, endpoint: proxy.endpoint, sql: url, grace: GRACE_SECONDS },
      proxy,
      sql,
      standby,
    );
  }

  /** This disturbance does not end: a lost primary does not come back. */
  get failover(): Disturbance {
    return {
      name: "PostgreSQL fails over to its standby",
      begin: async () => {
        await this.#sql.kill();
        await this.#standby.promote();
        this.#sql = this.#standby;
      },
      end: async () => {},
    };
  }

  /** Chooses a disturbance that ends. Each occurs once before any occurs again. */
  next(random: Random): Disturbance {
    if (this.#left.length === 0) this.#left = this.#all(random);
    const [next] = this.#left.splice(random.below(this.#left.length), 1);
    return next as Disturbance;
  }

  #all(random: Random): Disturbance[] {
    const start = () => this.#sql.start();
    return [
      { name: "PostgreSQL stops", begin: () => this.#sql.stop(), end: start },
      { name: "PostgreSQL is killed", begin: () => this.#sql.kill(), end: start },
      {
        name: "PostgreSQL is suspended",
        begin: async () => this.#sql.freeze(),
        end: async () => this.#sql.thaw(),
      },
      {
        name: "S3 fails",
        begin: async () => {
          this.#proxy.choose = atRandom(() => random.next(), FAULTY, FAULTS);
        },
        end: () => this.#restoreObjects(),
      },
      {
        name: "S3 is slow",
        begin: async () => {
          this.#proxy.latency = SLOW_MS;
        },
        end: () => this.#restoreObjects(),
      },
      {
        name: "S3 stands still",
        begin: async () => {
          this.#proxy.choose = () => "swallowed";
        },
        end: () => this.#restoreObjects(),
      },
      {
        name: "responses of S3 are slow",
        begin: async () => {
          this.#proxy.rate = TRICKLE;
        },
        end: () => this.#restoreObjects(),
      },
      {
        name: "S3 is away",
        begin: async () => {
          this.#proxy.choose = () => "reset";
        },
        end: () => this.#restoreObjects(),
      },
    ];
  }

  async #restoreObjects(): Promise<void> {
    this.#proxy.choose = () => undefined;
    this.#proxy.latency = 0;
    this.#proxy.rate = undefined;
    // Ends requests that wait for a swallowed response.
    this.#proxy.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy[Symbol.asyncDispose]();
    for (const server of new Set([this.#sql, this.#standby])) await server[Symbol.asyncDispose]();
  }
}
