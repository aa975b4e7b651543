/** Connections of one client: a pool per origin, and apart from each other those made with different options. */
import { createHash } from "node:crypto";
import type { Agent, Dispatcher } from "undici";
import type { ConnectionOptions } from "./client_request.ts";
import { undici } from "./undici.ts";

/** Sets of connection options whose connections are kept at a time; the one unused for longest gives way. */
const MAX_POOLS = 32;

const MAX_TIMER = 2 ** 31 - 1;

/** 0, which undici and Node take for "never", where a timer cannot run that long. */
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

  /** Cuts every connection; resolves when all are gone. */
  async destroy(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all([...agents.map((agent) => agent.destroy()), ...this.#leaving]);
  }

  /** Its connections go when the requests on them are done. */
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

/** undici takes a reset for the end of a body that lasts until the connection closes; under another code it does not. */
function unmistakable(error: NodeJS.ErrnoException): void {
  if (error.code === "ECONNRESET") error.code = "ECONNABORTED";
}

function keyOf({ connect_timeout, max_header, insecure, servername, ca, cert, key }: ConnectionOptions): string {
  const secrets = [ca, cert, key].map((pem) => (pem === undefined ? "" : digest(pem)));
  return JSON.stringify([String(connect_timeout), max_header, insecure === true, servername, ...secrets]);
}

const digest = (pem: unknown) => createHash("sha256").update(JSON.stringify(pem)).digest("base64");
