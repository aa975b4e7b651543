/** The RPC API: handles one HTTP request from authorization to response. */

import { cidWriter, failure, type Node, NodeError, parseDuration, type WaitingKey } from "modhost/node";
import { readParts } from "../../../core/http/index.ts";
import { ModhostError } from "../../../core/index.ts";
import type {
  HttpEvent,
  MultipartPart,
  PresentedToken,
  ResponseFields,
  ResponseHeaders,
  TokenNeed,
  Tokens,
} from "../../../core/types.ts";
import { type AnyCall, isCommand } from "../rpc/command.ts";
import type { CommandLog } from "../rpc/command_log.ts";
import { encoderOf } from "../rpc/encodings.ts";
import { clashText, wordingOf } from "../rpc/levels.ts";
import type { Operator } from "../rpc/operator.ts";
import { find, loggable, type Parsed, parse, Refusal } from "../rpc/parse_call.ts";
import type { Table } from "../rpc/table.ts";
import { createVisit, firstRefusal, type GateSettings, refusalResponse, type Visit } from "./admission.ts";
import type { CommandMetrics } from "./command_metrics.ts";
import { commandTrace } from "./command_trace.ts";
import { pendingKeysHeader } from "./config_waits.ts";
import { type ConfiguredHeaders, type Cors, copiedHeaders } from "./cors.ts";
import { plainError, respond, serverHeaders } from "./respond.ts";
import { ResponseCache } from "./response_cache.ts";
import { firstClosedPath, scopeDecision } from "./token_scopes.ts";

export interface ApiSettings extends GateSettings {
  readonly table: Table;
  /**
   * HTTP methods by which commands may be called, in the order of the Allow header. Default: POST
   * only.
   */
  readonly methods?: readonly string[];
  /** Seconds that callers may pause in the middle of a body. */
  readonly uploadPause?: number | undefined;
  readonly log: CommandLog;
  readonly metrics: CommandMetrics;
  /** Label of the listener in metrics. Default: "api". */
  readonly handler?: "gateway";
  /** Called with unexpected errors, which are bugs, as opposed to errors of the node. */
  fault(command: string, thrown: unknown): void;
  /** Undefined while the node is not open; commands that need it then fail. */
  readonly node: Node | undefined;
  /** Undefined if commands may not stop the node. */
  readonly operator?: Operator | undefined;
  /** Awaited before a request is checked, to open the node if necessary. */
  prepare?(): Promise<unknown> | undefined;
}

/**
 * Only the headers of parts are limited, because they are stored in memory; the number of parts is
 * not.
 */
const partLimits = { parts: Number.POSITIVE_INFINITY, header_bytes: 64 * 1024 };

export class Api {
  readonly #settings: ApiSettings;
  readonly #cache = new ResponseCache();
  /** Headers that all responses share, cached until the configuration changes. */
  #common: { readonly configured: ConfiguredHeaders | undefined; readonly headers: ResponseHeaders } = {
    configured: undefined,
    headers: {},
  };

  constructor(settings: ApiSettings) {
    this.#settings = settings;
  }

  /** Handles a call. `rest` is the decoded path after the API prefix. */
  async handle(event: HttpEvent, rest: string): Promise<ResponseFields> {
    // Drops the headers that the host has set: the API alone decides about CORS.
    event.response.headers = {};
    const { methods = ["POST"] } = this.#settings;
    // The node must be open first, since its config also decides who may call.
    const preparing = this.#settings.prepare?.();
    if (preparing !== undefined) await preparing;
    const visitor = createVisit(event.request, this.#settings, rest, methods);
    const response = firstRefusal(visitor) ?? (await this.#call(event, visitor));
    const { metrics, handler = "api" } = this.#settings;
    metrics.countResponse(event.request.method, response.status_code ?? 200, handler);
    return response;
  }

  /** Serves a document about the API, with the same access checks. */
  async document(event: HttpEvent, text: () => string): Promise<ResponseFields> {
    event.response.headers = {};
    await this.#settings.prepare?.();
    const visitor = createVisit(event.request, this.#settings, undefined, ["GET", "HEAD"]);
    const own = { content_type: "application/json", x_content_type_options: "nosniff" };
    const headers = { ...visitor.cors.headers(), ...own };
    return firstRefusal(visitor) ?? { status_code: 200, headers, body: text() };
  }

  async #call(event: HttpEvent, { components = [], cors, serverToken }: Visit): Promise<ResponseFields> {
    const { table } = this.#settings;
    const { request } = event;
    const headers = cors.headers();
    const found = find(table, components);
    if (found === undefined) return plainError(404, "404 page not found", headers);
    const token = serverToken as PresentedToken | undefined;
    const open = token === undefined ? "open" : scopeDecision(token, found);
    if (typeof open === "object") return this.#lacking(token, open.lacks, cors);
    const run = new Run(event);
    const type = request.header("content-type") ?? "";
    try {
      const parts = ({ timeout }: Parsed["options"]) => {
        run.limit(durationOf(timeout as string | undefined));
        return run.parts(type);
      };
      const parsed = await parse(found, request.url.query ?? "", { type, parts }, table.level.httpTraits);
      if (table.level.clashes[parsed.path]?.(parsed) === true) {
        throw new Refusal(clashText(parsed.path, table.level));
      }
      const closed = token === undefined ? undefined : firstClosedPath(token, parsed, open);
      if (closed === undefined) return await this.#run(run, parsed, headers);
      run.over();
      return this.#lacking(token, closed, cors);
    } catch (error) {
      run.over();
      if (error instanceof Refusal) return plainError(400, error.message, headers);
      throw error;
    }
  }

  #commonHeaders(): ResponseHeaders {
    const configured = this.#settings.headers();
    if (this.#common.configured !== configured) {
      const { traits } = this.#settings.table.level;
      this.#common = { configured, headers: serverHeaders(copiedHeaders(configured), traits) };
    }
    return this.#common.headers;
  }

  #lacking(token: PresentedToken | undefined, need: TokenNeed, cors: Cors): ResponseFields {
    return refusalResponse((this.#settings.serverTokens as Tokens).lacks(token as PresentedToken, need), cors);
  }

  #run(run: Run, parsed: Parsed, base: ResponseHeaders): Promise<ResponseFields> | ResponseFields {
    const { table, log, metrics, fault, node, operator } = this.#settings;
    const { entry, path, options } = parsed;
    const headers = { ...this.#commonHeaders(), ...base };
    const refuse = (message: string) => {
      run.over();
      return plainError(400, message, headers);
    };
    const { timeout, encoding } = options as { timeout?: string; encoding: string };
    if (timeout !== undefined) {
      const limit = durationOf(timeout);
      if (limit === undefined) return refuse(`invalid timeout: ${timeout}`);
      run.limit(limit);
    }
    const encoder = encoderOf(entry, encoding);
    if (encoder === undefined) return refuse(`invalid encoding: ${encoding}`);
    if (isCommand(entry) && entry.endless === true) run.endWithServer();

    const { args, options: shown } = loggable(parsed);
    if (node?.lowLevel.log.isWritten("cmds/http", "debug")) {
      const query = new URLSearchParams(args.map((value): [string, string] => ["arg", value])).toString();
      node.lowLevel.log.write("cmds/http", "debug", `incoming API request: /${path}${query === "" ? "" : `?${query}`}`);
    }
    const ended = log.begin(path, args, shown);
    const counted = metrics.begin(path);
    const call = new TypedCall(parsed, run, headers, { table, log, node, operator });
    const trace = commandTrace(path);
    const bytesType = table.level.httpTraits.bytes[path] ?? "text/plain";
    const running = {
      call,
      level: table.level,
      bytesType: typeof bytesType === "string" ? bytesType : bytesType(options),
      encoder,
      headers,
      response: run.event.response,
      cache: this.#cache,
      eager: isCommand(entry) && entry.eager === true,
      ahead:
        isCommand(entry) && entry.file !== undefined && parsed.hasBody
          ? { folder: () => call.node.lowLevel.scratch, isUploading: () => run.isUploading }
          : undefined,
      failed: (thrown: unknown) => {
        counted.failed();
        trace?.failed(thrown);
        const known = thrown instanceof NodeError || ModhostError.is(thrown);
        if (!known && !run.signal.aborted) fault(path, thrown);
      },
      over: () => {
        ended();
        counted.over();
        trace?.over();
        run.over();
      },
    };
    const runCommand = () => respond(running, () => (isCommand(entry) ? entry.run(call) : undefined));
    return trace === undefined ? runCommand() : trace.run(runCommand);
  }
}

function durationOf(text: string | undefined): number | undefined {
  try {
    return text === undefined ? undefined : parseDuration(text);
  } catch {
    return undefined;
  }
}

/** Node's timers take at most 31 bits of milliseconds. A longer timeout is treated as none. */
const longestTimer = 2 ** 31 - 1;

/** The resources of one call until it ends: its timeout and its body. */
class Run {
  readonly event: HttpEvent;
  #signal: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  #limit: AbortController | undefined;
  #parts: AsyncGenerator<MultipartPart> | undefined;
  /** Whether the body is being read and has not ended. */
  isUploading = false;

  constructor(event: HttpEvent) {
    this.event = event;
  }

  get signal(): AbortSignal {
    this.#signal ??=
      this.#limit === undefined
        ? this.event.request.signal
        : AbortSignal.any([this.event.request.signal, this.#limit.signal]);
    return this.#signal;
  }

  /**
   * Sets the timeout. Only the first call counts; zero or less expires at once, undefined sets no
   * timeout.
   */
  limit(milliseconds: number | undefined): void {
    if (milliseconds === undefined || this.#limit !== undefined) return;
    const limit = new AbortController();
    this.#signal = undefined;
    const expire = () => limit.abort(failure("DEADLINE_EXCEEDED"));
    this.#limit = limit;
    if (milliseconds <= 0) expire();
    else if (milliseconds <= longestTimer) this.#timer = setTimeout(expire, milliseconds);
  }

  /** Aborts the signal when the module is about to be unloaded. */
  endWithServer(): void {
    const { leaving, signal } = this.event.request;
    const end = new AbortController();
    const abort = () => end.abort(failure("CANCELED"));
    if (leaving.aborted) abort();
    else leaving.addEventListener("abort", abort, { once: true });
    this.#signal = AbortSignal.any([this.#limit?.signal ?? signal, signal, end.signal]);
  }

  /** Yields the parts of the body. Reading stops when the call is aborted or ends. */
  async *parts(type: string): AsyncGenerator<MultipartPart> {
    this.#parts = readParts(this.event.request.body_stream, type, partLimits, this.signal);
    this.isUploading = true;
    yield* this.#parts;
    this.isUploading = false;
  }

  over(): void {
    clearTimeout(this.#timer);
    this.#parts?.return(undefined).catch(() => undefined);
    this.#parts = undefined;
  }
}

type Surroundings = Pick<ApiSettings, "table" | "log" | "node" | "operator">;

class TypedCall implements AnyCall {
  readonly #parsed: Parsed;
  readonly #run: Run;
  readonly #headers: ResponseHeaders;
  readonly #around: Surroundings;

  constructor(parsed: Parsed, run: Run, headers: ResponseHeaders, around: Surroundings) {
    this.#parsed = parsed;
    this.#run = run;
    this.#headers = headers;
    this.#around = around;
  }

  get arguments() {
    return this.#parsed.arguments;
  }
  get options() {
    return this.#parsed.options;
  }
  get given() {
    return this.#parsed.given;
  }
  get files() {
    return this.#parsed.files;
  }
  get signal() {
    return this.#run.signal;
  }
  get offline() {
    return this.options.offline === true || this.options.local === true;
  }
  get node() {
    if (this.#around.node === undefined) throw failure("STORE_CLOSED");
    return this.#around.node;
  }
  get cidForm() {
    const given = this.options as { "cid-base"?: string; "upgrade-cidv0-in-output"?: boolean };
    return { cidBase: given["cid-base"], upgradeCidv0InOutput: given["upgrade-cidv0-in-output"] };
  }
  get table() {
    return this.#around.table;
  }
  get level() {
    return this.#around.table.level.traits;
  }
  get log() {
    return this.#around.log;
  }
  get operator() {
    const { operator } = this.#around;
    if (operator === undefined) throw failure("DAEMON_NOT_RUNNING");
    return operator;
  }

  // Bound functions, because commands destructure the call.
  readonly cidText = (level: "upgraded" | "kept" = "upgraded") => cidWriter(this.cidForm, level);

  readonly wording = (thrown: unknown) => wordingOf(thrown, this.#around.table.level);

  readonly announce = (length: number) => {
    this.#headers.x_content_length = String(length);
  };

  readonly reportPendingKeys = (keys: readonly WaitingKey[]) => {
    if (keys.length > 0) this.#headers.x_modhost_config_waits = pendingKeysHeader(keys);
  };
}
