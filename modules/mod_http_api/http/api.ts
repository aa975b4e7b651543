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
import { type GateSettings, pass, refusalAnswer, type Visit, visit } from "./admission.ts";
import { commandTrace } from "./command_trace.ts";
import { waitingList } from "./config_waits.ts";
import { type ConfiguredHeaders, type Cors, copiedHeaders } from "./cors.ts";
import type { CommandFigures } from "./figures.ts";
import { KeptAnswers } from "./kept_answers.ts";
import { plain, respond, serverHeaders } from "./respond.ts";
import { closedPath, opened } from "./token_scopes.ts";

export interface ApiSettings extends GateSettings {
  readonly table: Table;
  /** HTTP methods by which commands may be called, in the order of the Allow header. Default: POST only. */
  readonly methods?: readonly string[];
  /** Seconds that callers may pause in the midst of a body. */
  readonly uploadPause?: number | undefined;
  readonly log: CommandLog;
  readonly figures: CommandFigures;
  /** What the listener is called in figures. */
  readonly handler?: "gateway";
  /** Called with unexpected errors, which are bugs, as opposed to errors of the node. */
  fault(command: string, thrown: unknown): void;
  /** Undefined while the node is not open; commands that need it then fail. */
  readonly node: Node | undefined;
  /** Undefined if commands may not stop the node. */
  readonly operator?: Operator | undefined;
  /** Awaited before a request is looked at, to open the node if necessary. */
  prepare?(): Promise<unknown> | undefined;
}

/** Only the headers of parts are limited, because they are held in memory; the number of parts is not. */
const partLimits = { parts: Number.POSITIVE_INFINITY, header_bytes: 64 * 1024 };

export class Api {
  readonly #settings: ApiSettings;
  readonly #kept = new KeptAnswers();
  /** Of every answer, as long as the configuration has the same headers. */
  #common: { readonly configured: ConfiguredHeaders | undefined; readonly headers: ResponseHeaders } = {
    configured: undefined,
    headers: {},
  };

  constructor(settings: ApiSettings) {
    this.#settings = settings;
  }

  /** `rest` is the decoded path after the API prefix. */
  async answer(event: HttpEvent, rest: string): Promise<ResponseFields> {
    // Drop headers set by the host: CORS is decided here alone.
    event.response.headers = {};
    const { methods = ["POST"] } = this.#settings;
    // First of all: the node's config has a say in who may call.
    const preparing = this.#settings.prepare?.();
    if (preparing !== undefined) await preparing;
    const visitor = visit(event.request, this.#settings, rest, methods);
    const answer = pass(visitor) ?? (await this.#call(event, visitor));
    const { figures, handler = "api" } = this.#settings;
    figures.answered(event.request.method, answer.status_code ?? 200, handler);
    return answer;
  }

  /** A document about the API, subject to the same access checks. */
  async document(event: HttpEvent, text: () => string): Promise<ResponseFields> {
    event.response.headers = {};
    await this.#settings.prepare?.();
    const visitor = visit(event.request, this.#settings, undefined, ["GET", "HEAD"]);
    const own = { content_type: "application/json", x_content_type_options: "nosniff" };
    const headers = { ...visitor.cors.headers(), ...own };
    return pass(visitor) ?? { status_code: 200, headers, body: text() };
  }

  async #call(event: HttpEvent, { components = [], cors, held }: Visit): Promise<ResponseFields> {
    const { table } = this.#settings;
    const { request } = event;
    const headers = cors.headers();
    const found = find(table, components);
    if (found === undefined) return plain(404, "404 page not found", headers);
    const token = held as PresentedToken | undefined;
    const open = token === undefined ? "open" : opened(token, found);
    if (typeof open === "object") return this.#lacking(token, open.lacks, cors);
    const run = new Run(event);
    const type = request.headers.content_type ?? "";
    try {
      const parts = ({ timeout }: Parsed["options"]) => {
        run.limit(durationOf(timeout as string | undefined));
        return run.parts(type);
      };
      const parsed = await parse(found, request.url.query ?? "", { type, parts }, table.level.frame);
      if (table.level.clashes[parsed.path]?.(parsed) === true) {
        throw new Refusal(clashText(parsed.path, table.level));
      }
      const closed = open === "paths" && token !== undefined ? closedPath(token, parsed) : undefined;
      if (closed === undefined) return await this.#run(run, parsed, headers);
      run.over();
      return this.#lacking(token, closed, cors);
    } catch (error) {
      run.over();
      if (error instanceof Refusal) return plain(400, error.message, headers);
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
    return refusalAnswer((this.#settings.serverTokens as Tokens).lacks(token as PresentedToken, need), cors);
  }

  #run(run: Run, parsed: Parsed, base: ResponseHeaders): Promise<ResponseFields> | ResponseFields {
    const { table, log, figures, fault, node, operator } = this.#settings;
    const { entry, path, options } = parsed;
    const headers = { ...this.#commonHeaders(), ...base };
    const refuse = (message: string) => {
      run.over();
      return plain(400, message, headers);
    };
    const { timeout, encoding } = options as { timeout?: string; encoding: string };
    if (timeout !== undefined) {
      const limit = durationOf(timeout);
      if (limit === undefined) return refuse(`invalid timeout: ${timeout}`);
      run.limit(limit);
    }
    const encoder = encoderOf(entry, encoding);
    if (encoder === undefined) return refuse(`invalid encoding: ${encoding}`);

    const { args, options: shown } = loggable(parsed);
    const ended = log.begin(path, args, shown);
    const counted = figures.begin(path);
    const call = new TypedCall(parsed, run, headers, { table, log, node, operator });
    const trace = commandTrace(path);
    const bytesType = table.level.frame.bytes[path] ?? "text/plain";
    const running = {
      call,
      level: table.level,
      bytesType: typeof bytesType === "string" ? bytesType : bytesType(options),
      encoder,
      headers,
      response: run.event.response,
      kept: this.#kept,
      eager: isCommand(entry) && entry.eager === true,
      ahead:
        isCommand(entry) && entry.file !== undefined && parsed.hasBody
          ? { folder: () => call.node.lowLevel.scratch, isComing: () => run.isComing }
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
    const answer = () => respond(running, () => (isCommand(entry) ? entry.run(call) : undefined));
    return trace === undefined ? answer() : trace.run(answer);
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

/** Resources held by one call until it ends: its timeout and the body being read. */
class Run {
  readonly event: HttpEvent;
  #signal: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  #limit: AbortController | undefined;
  #parts: AsyncGenerator<MultipartPart> | undefined;
  /** The body is being read, and not at its end. */
  isComing = false;

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

  /** Sets the timeout. Only the first call counts; zero or less expires at once, undefined sets no timeout. */
  limit(milliseconds: number | undefined): void {
    if (milliseconds === undefined || this.#limit !== undefined) return;
    const limit = new AbortController();
    this.#signal = undefined;
    const expire = () => limit.abort(new NodeError("context deadline exceeded"));
    this.#limit = limit;
    if (milliseconds <= 0) expire();
    else if (milliseconds <= longestTimer) this.#timer = setTimeout(expire, milliseconds);
  }

  /** The parts of the body. Reading stops when the call is aborted or ends. */
  async *parts(type: string): AsyncGenerator<MultipartPart> {
    this.#parts = readParts(this.event.request.body_stream, type, partLimits, this.signal);
    this.isComing = true;
    yield* this.#parts;
    this.isComing = false;
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
    if (operator === undefined) throw new NodeError("daemon not running", { kind: "client" });
    return operator;
  }

  // Bound functions, since commands destructure the call.
  readonly cidText = (level: "upgraded" | "kept" = "upgraded") => cidWriter(this.cidForm, level);

  readonly wording = (thrown: unknown) => wordingOf(thrown, this.#around.table.level);

  readonly announce = (length: number) => {
    this.#headers.x_content_length = String(length);
  };

  readonly tellWaiting = (keys: readonly WaitingKey[]) => {
    if (keys.length > 0) this.#headers.x_modhost_config_waits = waitingList(keys);
  };
}
