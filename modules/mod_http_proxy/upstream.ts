/** One server that requests are forwarded to: its connections, its load, and its health. */
import type * as Http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import type { FaultReason, RelayFault } from "../../core/http/index.ts";
import type { Settings, UpstreamAddress } from "./settings.ts";

// An import of `node:http` makes Node load its fetch client.
const http = process.getBuiltinModule("node:http");

export type UpstreamState = "healthy" | "unhealthy" | "failing" | "drained";

/**
 * Settings that connections depend on. An upstream with other settings gets its own connections.
 */
const connectionFields = ["keep_alive", "max_idle", "ca", "tls_server_name", "tls_insecure"] as const;

/** Returns a text that is the same for settings with the same connections. */
export function connectionsBy(settings: Settings): string {
  return JSON.stringify(connectionFields.map((field) => settings[field]));
}

/** The counts of an upstream, which outlive a change of its settings. */
export interface UpstreamCounts {
  requests: number;
  failures: number;
  /** Requests that it got after they had failed once. */
  retries: number;
  /** Responses by the first digit of their status. */
  readonly classes: number[];
  readonly reasons: Map<FaultReason, number>;
}

export class Upstream {
  readonly address: UpstreamAddress;
  /** The settings of its connections: see `connectionsBy`. */
  readonly connections: string;
  readonly counts: UpstreamCounts;
  /** Whether the operator has drained it, so that it gets no further requests. */
  drained = false;
  /** Number of open requests and websockets. */
  inFlight = 0;
  /** Reason of the latest failure. */
  lastFailure: string | undefined;
  readonly #agent: Http.Agent;
  /** Whether health checks have found it unhealthy. */
  #isUnhealthy = false;
  /** Number of consecutive checks that contradict the current state. */
  #contrary = 0;
  /** Times of the failures that still count. */
  #failed: number[] = [];
  #outUntil = 0;
  #isRetired = false;

  /** `previous`: the upstream of the same name that had other settings. */
  constructor(address: UpstreamAddress, settings: Settings, previous?: Upstream) {
    this.address = address;
    this.connections = connectionsBy(settings);
    this.counts = previous?.counts ?? { requests: 0, failures: 0, retries: 0, classes: [], reasons: new Map() };
    this.drained = previous?.drained === true;
    const { keep_alive, max_idle, ca, tls_server_name, tls_insecure } = settings;
    const pool = {
      keepAlive: keep_alive > 0 && max_idle > 0,
      timeout: keep_alive * 1000,
      maxFreeSockets: Math.max(1, max_idle),
      scheduling: "lifo" as const,
    };
    const servername = tls_server_name !== "" ? tls_server_name : isIP(address.hostname) > 0 ? "" : address.hostname;
    this.#agent = address.secure
      ? new https.Agent({ ...pool, servername, rejectUnauthorized: !tls_insecure, ...(ca === undefined ? {} : { ca }) })
      : new http.Agent(pool);
  }

  get name(): string {
    return this.address.name;
  }

  /** Opens a request. `isFresh`: on a new connection, because idle ones may already be closed. */
  open(options: Http.RequestOptions, isFresh = false): Http.ClientRequest {
    const { secure, hostname, port, socketPath } = this.address;
    if (isFresh) this.#closeIdle();
    const where = socketPath === undefined ? { host: hostname, port } : { socketPath };
    return (secure ? https : http).request({ ...options, ...where, agent: this.#agent, setHost: false });
  }

  begin(): void {
    this.inFlight += 1;
    this.counts.requests += 1;
  }

  end(): void {
    this.inFlight -= 1;
    if (this.#isRetired && this.inFlight === 0) this.#agent.destroy();
  }

  /** Counts a response. */
  responded(status: number): void {
    const { classes } = this.counts;
    const digit = Math.floor(status / 100);
    classes[digit] = (classes[digit] ?? 0) + 1;
  }

  state(now: number): UpstreamState {
    if (this.drained) return "drained";
    if (this.#isUnhealthy) return "unhealthy";
    return now < this.#outUntil ? "failing" : "healthy";
  }

  /** Returns the seconds until it may get requests again; undefined if unknown. */
  wait(now: number): number | undefined {
    return this.drained || this.#isUnhealthy ? undefined : Math.max(0, this.#outUntil - now);
  }

  /**
   * Records a failed request that a healthy upstream would have responded to. Returns true if the
   * upstream gets no requests for a time.
   */
  failed(now: number, fault: RelayFault, { fail_after, fail_window, fail_time }: Settings): boolean {
    const { reasons } = this.counts;
    this.counts.failures += 1;
    reasons.set(fault.reason, (reasons.get(fault.reason) ?? 0) + 1);
    this.lastFailure = fault.message;
    if (fail_after === 0) return false;
    this.#failed = [...this.#failed.filter((time) => time > now - fail_window), now];
    if (this.#failed.length < fail_after) return false;
    this.#failed = [];
    this.#outUntil = now + fail_time;
    return true;
  }

  /** Records the result of a check. Returns whether the health of the upstream has changed. */
  checked(isGood: boolean, { healthy_after, unhealthy_after }: Settings): boolean {
    if (isGood !== this.#isUnhealthy) {
      this.#contrary = 0;
      return false;
    }
    this.#contrary += 1;
    if (this.#contrary < (isGood ? healthy_after : unhealthy_after)) return false;
    this.#contrary = 0;
    this.#isUnhealthy = !isGood;
    if (isGood) this.#outUntil = 0;
    return true;
  }

  /** Ends the checks. From now on only failed requests count. */
  unchecked(): void {
    this.#isUnhealthy = false;
    this.#contrary = 0;
  }

  /** Stops new requests. Its connections are closed when its last request has ended. */
  retire(): void {
    this.#isRetired = true;
    if (this.inFlight === 0) this.#agent.destroy();
    else this.#closeIdle();
  }

  #closeIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}
