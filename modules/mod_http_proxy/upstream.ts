/** One server that requests are handed to: its connections, what it is doing, and whether it is well. */
import type * as Http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import type { Settings, UpstreamAddress } from "./settings.ts";

// An import of `node:http` makes Node load its fetch client.
const http = process.getBuiltinModule("node:http");

export type UpstreamState = "healthy" | "unhealthy" | "failing" | "drained";

/** Connections of an upstream are kept apart from those made by other rules. */
const keptFields = ["keep_alive", "max_idle", "ca", "tls_server_name", "tls_insecure"] as const;

/** What makes two upstreams of two configurations the same one. */
export function upstreamKey(address: UpstreamAddress, settings: Settings): string {
  return JSON.stringify([address.name, ...keptFields.map((field) => settings[field])]);
}

export class Upstream {
  readonly address: UpstreamAddress;
  /** By request of the operator it gets no further requests. */
  drained = false;
  /** Requests and websockets. */
  inFlight = 0;
  requests = 0;
  failures = 0;
  /** Why it failed last. */
  lastFailure: string | undefined;
  readonly #agent: Http.Agent;
  /** By its own answers to checks. */
  #isUnhealthy = false;
  /** Checks in a row that say otherwise. */
  #contrary = 0;
  /** Times of failures that still count. */
  #failed: number[] = [];
  #outUntil = 0;
  #isRetired = false;

  constructor(address: UpstreamAddress, settings: Settings) {
    this.address = address;
    const { keep_alive, max_idle, ca, tls_server_name, tls_insecure } = settings;
    const kept = {
      keepAlive: keep_alive > 0 && max_idle > 0,
      timeout: keep_alive * 1000,
      maxFreeSockets: Math.max(1, max_idle),
      scheduling: "lifo" as const,
    };
    const servername = tls_server_name !== "" ? tls_server_name : isIP(address.hostname) > 0 ? "" : address.hostname;
    this.#agent = address.secure
      ? new https.Agent({ ...kept, servername, rejectUnauthorized: !tls_insecure, ...(ca === undefined ? {} : { ca }) })
      : new http.Agent(kept);
  }

  get name(): string {
    return this.address.name;
  }

  /** Opens a request. `isFresh`: by a connection of its own, as those that were kept may be closed already. */
  open(options: Http.RequestOptions, isFresh = false): Http.ClientRequest {
    const { secure, hostname, port, socketPath } = this.address;
    if (isFresh) this.#closeIdle();
    const where = socketPath === undefined ? { host: hostname, port } : { socketPath };
    return (secure ? https : http).request({ ...options, ...where, agent: this.#agent, setHost: false });
  }

  begin(): void {
    this.inFlight += 1;
    this.requests += 1;
  }

  end(): void {
    this.inFlight -= 1;
    if (this.#isRetired && this.inFlight === 0) this.#agent.destroy();
  }

  state(now: number): UpstreamState {
    if (this.drained) return "drained";
    if (this.#isUnhealthy) return "unhealthy";
    return now < this.#outUntil ? "failing" : "healthy";
  }

  /** Seconds until it may be asked again, as far as that is known. */
  wait(now: number): number | undefined {
    return this.drained || this.#isUnhealthy ? undefined : Math.max(0, this.#outUntil - now);
  }

  /** A request has failed that a healthy upstream answers. True when it gets no more for a time. */
  failed(now: number, reason: string, { fail_after, fail_window, fail_time }: Settings): boolean {
    this.failures += 1;
    this.lastFailure = reason;
    if (fail_after === 0) return false;
    this.#failed = [...this.#failed.filter((time) => time > now - fail_window), now];
    if (this.#failed.length < fail_after) return false;
    this.#failed = [];
    this.#outUntil = now + fail_time;
    return true;
  }

  /** What a check has shown. True when its health has changed. */
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

  /** Nobody checks it any more: only its failures tell. */
  unchecked(): void {
    this.#isUnhealthy = false;
    this.#contrary = 0;
  }

  /** It gets no further requests: its connections are closed when the last of those it has is over. */
  retire(): void {
    this.#isRetired = true;
    if (this.inFlight === 0) this.#agent.destroy();
    else this.#closeIdle();
  }

  #closeIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}
