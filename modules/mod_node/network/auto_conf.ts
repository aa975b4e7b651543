/**
 * Fetches the document of `AutoConf.URL`, which says what the word `auto` stands for, as long as that word is in the configuration: at
 * once where what was fetched before is too old, and again and again. Nothing waits for it, and whatever goes wrong leaves what is in force.
 */

import { parseAutoConf } from "../storage/repo/autoconf/document.ts";
import { AUTO_CONF_URL, type ConfigFile } from "../storage/repo/config.ts";
import { agentVersion } from "../util/agent_version.ts";
import { readAll } from "../util/async/read_all.ts";
import { NodeError } from "../util/errors.ts";
import { fetchErrorText } from "../util/fetch_error.ts";
import { parseDuration } from "../util/go/duration.ts";
import type { NodeLog } from "../util/log.ts";

export interface AutoConfDeps {
  readonly config: ConfigFile;
  readonly log: NodeLog;
  /** What the word stands for is another thing from now on. */
  readonly changed: () => Promise<void>;
}

/** As in Kubo. */
const DEFAULT_INTERVAL = "24h";
const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;
/** Milliseconds for a whole answer. */
const TIMEOUT_MS = 30_000;
/** Milliseconds until a server is asked again that did not answer; after each further time twice as many, up to the interval. */
const FIRST_RETRY_MS = 60_000;
/** Milliseconds between two questions, whatever the server and the configuration want. */
const LEAST_PAUSE_MS = 1000;
/** Timers count no further. */
const MOST_PAUSE_MS = 2 ** 31 - 1;

export class AutoConf {
  readonly #deps: AutoConfDeps;
  #timer: NodeJS.Timeout | undefined;
  /** Of what is going on; aborted by whatever comes after it. */
  #running = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #failures = 0;
  /** What the word stands for by those who use it. */
  #inForce: string;

  /** To be made when what uses the word has just read the configuration. */
  constructor(deps: AutoConfDeps) {
    this.#deps = deps;
    this.#inForce = valuesOf(deps.config);
  }

  /** Goes by the configuration as it is now, and resolves when what was fetched before is in force. */
  async renew(): Promise<void> {
    const { config } = this.#deps;
    await this.#stopped();
    this.#running = new AbortController();
    this.#failures = 0;
    await config.readAutoConf();
    await this.#apply();
    if (this.#isWanted()) await this.#plan({ isFirst: true });
  }

  /** Resolves when nothing is going on any more. */
  async stop(): Promise<void> {
    await this.#stopped();
  }

  async #stopped(): Promise<void> {
    clearTimeout(this.#timer);
    this.#running.abort(new Error("the node ends, or goes by another configuration"));
    await this.#ended;
  }

  #isWanted(): boolean {
    const { config } = this.#deps;
    return config.value("AutoConf.Enabled") !== false && config.saysAuto;
  }

  async #apply(): Promise<void> {
    const values = valuesOf(this.#deps.config);
    if (values === this.#inForce) return;
    this.#inForce = values;
    await this.#deps.changed();
  }

  async #plan({ isFirst = false } = {}): Promise<void> {
    const cached = await this.#deps.config.autoConfCache.read();
    const { signal } = this.#running;
    if (signal.aborted) return;
    const interval = Math.min(this.#interval(), cached?.document.ttlMs ?? Number.POSITIVE_INFINITY);
    const retry = this.#failures === 0 ? 0 : Math.min(interval, FIRST_RETRY_MS * 2 ** (this.#failures - 1));
    const due = cached === undefined ? 0 : cached.asked + interval - Date.now();
    const pause = isFirst && due <= 0 ? 0 : Math.min(Math.max(due, retry, LEAST_PAUSE_MS), MOST_PAUSE_MS);
    this.#timer = setTimeout(() => {
      this.#ended = this.#ask(signal);
    }, pause);
    this.#timer.unref();
  }

  #interval(): number {
    try {
      return parseDuration(this.#deps.config.value("AutoConf.RefreshInterval") ?? DEFAULT_INTERVAL);
    } catch {
      return parseDuration(DEFAULT_INTERVAL);
    }
  }

  /** Never rejects. */
  async #ask(signal: AbortSignal): Promise<void> {
    const { config, log } = this.#deps;
    const url = config.value("AutoConf.URL") || AUTO_CONF_URL;
    try {
      await this.#fetch(url, signal);
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#failures += 1;
      const reason = NodeError.is(error) ? error.message : fetchErrorText(error as Error);
      log.write("core", "warn", `${url} (AutoConf.URL): ${reason}; what was known before stays in force`);
    }
    if (!signal.aborted) await this.#plan().catch(() => undefined);
  }

  async #fetch(url: string, signal: AbortSignal): Promise<void> {
    const { config, log } = this.#deps;
    const cache = config.autoConfCache;
    const before = await cache.read();
    const answer = await ask(url, {
      etag: before?.etag,
      lastModified: before?.lastModified,
      insecure: config.value("AutoConf.TLSInsecureSkipVerify") === true,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    signal.throwIfAborted();
    if (answer === undefined || answer.text === before?.text) {
      await cache.asked();
      return;
    }
    const { version } = parseAutoConf(answer.text);
    await cache.write(answer);
    log.write("core", "info", `${url} (AutoConf.URL): version ${version}`);
    await config.readAutoConf();
    await this.#apply();
  }
}

/** To see whether they change; which resolver is chosen of several does not count. */
const valuesOf = ({ auto }: ConfigFile): string =>
  JSON.stringify({ ...auto, "DNS.Resolvers": Object.keys(auto["DNS.Resolvers"]) });

interface Question {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** The certificate is not looked at. */
  readonly insecure: boolean;
  readonly signal: AbortSignal;
}

/** Undefined where nothing has changed. @throws NodeError for another answer than a document; Error of the network */
async function ask(url: string, { etag, lastModified, insecure, signal }: Question) {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) throw new NodeError("it is no URL of http or https");
  // Imported lazily: most nodes never fetch it.
  const { Agent, fetch } = await import("undici");
  const agent = new Agent({ connect: { rejectUnauthorized: !insecure } });
  const headers = {
    accept: "application/json",
    "user-agent": agentVersion,
    ...(etag !== undefined && { "if-none-match": etag }),
    ...(etag === undefined && lastModified !== undefined && { "if-modified-since": lastModified }),
  };
  try {
    const answer = await fetch(url, { dispatcher: agent, signal, headers });
    if (answer.status === 304 && (etag ?? lastModified) !== undefined) return undefined;
    if (answer.status !== 200 || answer.body === null) throw new NodeError(`the answer is ${answer.status}`);
    const tooLong = () => new NodeError(`the answer is longer than ${MAX_DOCUMENT_BYTES} bytes`);
    const bytes = await readAll(answer.body as AsyncIterable<Uint8Array>, MAX_DOCUMENT_BYTES, tooLong);
    return {
      text: Buffer.from(bytes).toString(),
      etag: answer.headers.get("etag") ?? undefined,
      lastModified: answer.headers.get("last-modified") ?? undefined,
    };
  } finally {
    await agent.destroy();
  }
}
