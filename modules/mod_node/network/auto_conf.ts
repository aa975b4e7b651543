/**
 * Fetches the document of `AutoConf.URL`, which defines the values of the word `auto`, while the
 * configuration contains that word: at once if the cached document is too old, and then at regular
 * intervals. Nothing waits for the fetch, and after any failure the current values stay in effect.
 */

import { parseAutoConf } from "../storage/repo/autoconf/document.ts";
import { AUTO_CONF_URL, type ConfigFile } from "../storage/repo/config.ts";
import { agentVersion } from "../util/agent_version.ts";
import { readAll } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { fetchErrorText } from "../util/fetch_error.ts";
import { parseDuration } from "../util/go/duration.ts";
import type { NodeLog } from "../util/log.ts";

export interface AutoConfDeps {
  readonly config: ConfigFile;
  readonly log: NodeLog;
  /** Called when the values of the word `auto` have changed. */
  readonly changed: () => Promise<void>;
}

/** The same default interval as in Kubo. */
const DEFAULT_INTERVAL = "24h";
const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;
/** Timeout in milliseconds for a whole response. */
const TIMEOUT_MS = 30_000;
/**
 * Milliseconds until the request is repeated after a failure; doubled with each further failure, up
 * to the interval.
 */
const FIRST_RETRY_MS = 60_000;
/**
 * Minimum number of milliseconds between two requests, whatever the server and the configuration
 * demand.
 */
const MIN_PAUSE_MS = 1000;
/** Longest delay that a timer supports. */
const MAX_PAUSE_MS = 2 ** 31 - 1;

export class AutoConf {
  readonly #deps: AutoConfDeps;
  #timer: NodeJS.Timeout | undefined;
  /** Aborts the current fetch, or the wait for it, as soon as another one replaces it. */
  #running = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #failures = 0;
  /** The values of `auto` that the users of the configuration currently have. */
  #current: string;

  /** Create it after the users of `auto` have read the configuration. */
  constructor(deps: AutoConfDeps) {
    this.#deps = deps;
    this.#current = valuesOf(deps.config);
  }

  /** Applies the current configuration, and resolves when the cached document is in effect. */
  async renew(): Promise<void> {
    const { config } = this.#deps;
    await this.#stopped();
    this.#running = new AbortController();
    this.#failures = 0;
    await config.readAutoConf();
    await this.#apply();
    if (this.#isWanted()) await this.#schedule({ isFirst: true });
  }

  /** Resolves when nothing is running. */
  async stop(): Promise<void> {
    await this.#stopped();
  }

  async #stopped(): Promise<void> {
    clearTimeout(this.#timer);
    this.#running.abort(new Error("the node closes, or its configuration changed"));
    await this.#ended;
  }

  #isWanted(): boolean {
    const { config } = this.#deps;
    return config.value("AutoConf.Enabled") !== false && config.saysAuto;
  }

  async #apply(): Promise<void> {
    const values = valuesOf(this.#deps.config);
    if (values === this.#current) return;
    this.#current = values;
    await this.#deps.changed();
  }

  async #schedule({ isFirst = false } = {}): Promise<void> {
    const cached = await this.#deps.config.autoConfCache.read();
    const { signal } = this.#running;
    if (signal.aborted) return;
    const interval = Math.min(this.#interval(), cached?.document.ttlMs ?? Number.POSITIVE_INFINITY);
    const retry = this.#failures === 0 ? 0 : Math.min(interval, FIRST_RETRY_MS * 2 ** (this.#failures - 1));
    const due = cached === undefined ? 0 : cached.refreshedAt + interval - Date.now();
    const pause = isFirst && due <= 0 ? 0 : Math.min(Math.max(due, retry, MIN_PAUSE_MS), MAX_PAUSE_MS);
    this.#timer = setTimeout(() => {
      this.#ended = this.#refresh(signal);
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

  /** Fetches the document once and applies changed values. Never rejects. */
  async #refresh(signal: AbortSignal): Promise<void> {
    const { config, log } = this.#deps;
    const url = config.value("AutoConf.URL") || AUTO_CONF_URL;
    try {
      await this.#fetch(url, signal);
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#failures += 1;
      const reason = NodeError.is(error) ? error.message : fetchErrorText(error as Error);
      log.write("core", "warn", `${url} (AutoConf.URL): ${reason}; the previous values stay in effect`);
    }
    if (!signal.aborted) await this.#schedule().catch(() => undefined);
  }

  async #fetch(url: string, signal: AbortSignal): Promise<void> {
    const { config, log } = this.#deps;
    const cache = config.autoConfCache;
    const before = await cache.read();
    const response = await request(url, {
      etag: before?.etag,
      lastModified: before?.lastModified,
      insecure: config.value("AutoConf.TLSInsecureSkipVerify") === true,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    signal.throwIfAborted();
    if (response === undefined || response.text === before?.text) {
      await cache.recordRefresh();
      return;
    }
    const { version } = parseAutoConf(response.text);
    await cache.write(response);
    log.write("core", "info", `${url} (AutoConf.URL): version ${version}`);
    await config.readAutoConf();
    await this.#apply();
  }
}

/**
 * The values as text, to detect changes. A change of the randomly chosen resolver does not count.
 */
const valuesOf = ({ auto }: ConfigFile): string =>
  JSON.stringify({ ...auto, "DNS.Resolvers": Object.keys(auto["DNS.Resolvers"]) });

interface ConditionalRequest {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** Whether to skip the verification of the certificate. */
  readonly insecure: boolean;
  readonly signal: AbortSignal;
}

/**
 * Resolves to undefined if the document has not changed. @throws NodeError for a response without a
 * document; Error for a network failure
 */
async function request(url: string, { etag, lastModified, insecure, signal }: ConditionalRequest) {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
    throw failure("AUTOCONF_NOT_FETCHED", { reason: "it is not an HTTP or HTTPS URL" });
  // Imported lazily, because most nodes never fetch the document.
  const { Agent, fetch } = await import("undici");
  const agent = new Agent({ connect: { rejectUnauthorized: !insecure } });
  const headers = {
    accept: "application/json",
    "user-agent": agentVersion,
    ...(etag !== undefined && { "if-none-match": etag }),
    ...(etag === undefined && lastModified !== undefined && { "if-modified-since": lastModified }),
  };
  try {
    const response = await fetch(url, { dispatcher: agent, signal, headers });
    if (response.status === 304 && (etag ?? lastModified) !== undefined) return undefined;
    if (response.status !== 200 || response.body === null)
      throw failure("AUTOCONF_NOT_FETCHED", { reason: `the response has status ${response.status}` });
    const tooLong = () =>
      failure("AUTOCONF_NOT_FETCHED", { reason: `the response is longer than ${MAX_DOCUMENT_BYTES} bytes` });
    const bytes = await readAll(response.body as AsyncIterable<Uint8Array>, MAX_DOCUMENT_BYTES, tooLong);
    return {
      text: Buffer.from(bytes).toString(),
      etag: response.headers.get("etag") ?? undefined,
      lastModified: response.headers.get("last-modified") ?? undefined,
    };
  } finally {
    await agent.destroy();
  }
}
