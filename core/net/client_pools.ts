/**
 * Connections of one client: a pool per origin, with separate pools for different connection
 * options.
 */
import { createHash } from "node:crypto";
import type { Agent, Dispatcher } from "undici";
import type { ConnectionOptions } from "./client_request.ts";
import { undici } from "./undici.ts";

/**
 * Maximum number of sets of connection options with open connections; the least recently used set
 * is closed first.
 */
const MAX_POOLS = 32;

const MAX_TIMER = 2 ** 31 - 1;

/**
 * Converts seconds to milliseconds. If no timer can run that long, returns 0, which means "never"
 * to undici and Node.
 */
export function milliseconds(seconds: number): number {
  return seconds * 1000 <= MAX_TIMER ? seconds * 1000 : 0;
}

export class Pools {
  readonly #settings: Agent.Options;
  readonly #agents = new Map<string, Agent>();
  readonly #leaving = new Set<Promise<void>>();

  constructor(settings: Agent.Options) {
    this.#settings = settings;
  }

  of(options: ConnectionOptions): Dispatcher {
    const key = keyOf(options);
    const agent = this.#agents.get(key) ?? this.#make(options);
    this.#agents.delete(key);
    this.#agents.set(key, agent);
    const [oldest, first] = this.#agents.entries().next().value ?? [];
    if (this.#agents.size > MAX_POOLS && oldest !== undefined && first !== undefined) this.#retire(oldest, first);
    return agent;
  }

  /** Closes every connection; resolves when all are closed. */
  async destroy(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all([...agents.map((agent) => agent.destroy()), ...this.#leaving]);
  }

  /** Closes an agent after the open requests on its connections. */
  #retire(key: string, agent: Agent): void {
    this.#agents.delete(key);
    const gone = agent.close().finally(() => this.#leaving.delete(gone));
    this.#leaving.add(gone);
  }

  #make({ connect_timeout = 0, max_header, insecure, ca, cert, key, servername }: ConnectionOptions): Agent {
    const given = Object.entries({ ca, cert, key, servername }).filter(([, value]) => value !== undefined);
    const { Agent, buildConnector } = undici();
    const connect = buildConnector({
      allowH2: this.#settings.allowH2 === true,
      timeout: milliseconds(connect_timeout),
      rejectUnauthorized: insecure !== true,
      ...Object.fromEntries(given),
    });
    return new Agent({
      ...this.#settings,
      ...(max_header === undefined ? {} : { maxHeaderSize: max_header }),
      connect: (target, callback) =>
        connect(target, (...result) => {
          result[1]?.on("error", unmistakable);
          callback(...result);
        }),
    });
  }
}

/**
 * Changes the code of a reset: undici would take ECONNRESET for the normal end of a body that lasts
 * until the connection closes.
 */
function unmistakable(error: NodeJS.ErrnoException): void {
  if (error.code === "ECONNRESET") error.code = "ECONNABORTED";
}

function keyOf({ connect_timeout, max_header, insecure, servername, ca, cert, key }: ConnectionOptions): string {
  const secrets = [ca, cert, key].map((pem) => (pem === undefined ? "" : digest(pem)));
  return JSON.stringify([String(connect_timeout), max_header, insecure === true, servername, ...secrets]);
}

const digest = (pem: unknown) => createHash("sha256").update(JSON.stringify(pem)).digest("base64");
