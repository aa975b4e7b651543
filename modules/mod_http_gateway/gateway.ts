/** One gateway: what is asked of it, in the order in which the public specifications look at a request. */
import type { NodeModule } from "modhost/node";
import type { RateLimit } from "../../core/http/index.ts";
import type { HttpEvent, HttpRequest, ModuleLog, ResponseFields } from "../../core/types.ts";
import { answerContent } from "./answers/index.ts";
import type { Asked } from "./asked.ts";
import { refusalAnswer } from "./errors/answer.ts";
import { Refusal, refusalOf, tooFast, tooLate, tooMany } from "./errors/refusal.ts";
import { headerText } from "./headers/content.ts";
import { DnsLinks } from "./hosts/dns_links.ts";
import { PathBlocks } from "./path_blocks.ts";
import { contentPath, type Place } from "./place.ts";
import { Reading } from "./reading.ts";
import { formatOf } from "./request/format.ts";
import { placeOfPath } from "./request/path.ts";
import { queryOf } from "./request/query.ts";
import { Redirect } from "./request/redirect.ts";
import type { GatewaySettings } from "./settings.ts";
import { isWriting, writeAnswer } from "./write.ts";

export interface GatewayDeps {
  readonly node: NodeModule;
  readonly log: ModuleLog;
  /** As they are now. */
  readonly settings: () => GatewaySettings;
  /** What each client may ask, as it is now. */
  readonly limit?: () => RateLimit | undefined;
}

const methodsOf = ({ writable }: GatewaySettings): string =>
  writable ? "GET, HEAD, OPTIONS, POST, PUT, DELETE" : "GET, HEAD, OPTIONS";

export class Gateway {
  readonly #node: NodeModule;
  readonly #log: ModuleLog;
  readonly #settings: () => GatewaySettings;
  readonly #limit: GatewayDeps["limit"];
  readonly #blocks: PathBlocks;
  readonly links: DnsLinks;
  /** Requests that are being answered. */
  #active = 0;

  constructor({ node, log, settings, limit }: GatewayDeps) {
    this.#node = node;
    this.#log = log;
    this.#settings = settings;
    this.#limit = limit;
    this.#blocks = new PathBlocks(node);
    this.links = new DnsLinks(node);
  }

  /** Answers a request of any method; `placeOf` says what it is for. Never rejects. */
  async answer(event: HttpEvent, placeOf: (request: HttpRequest) => Place | Promise<Place>): Promise<ResponseFields> {
    const { request } = event;
    const settings = this.#settings();
    let place: Place | undefined;
    try {
      if (request.method === "OPTIONS")
        return { headers: { ...settings.headers, allow: methodsOf(settings) }, body: "" };
      if (settings.writable && isWriting(request)) {
        this.#admit(event, settings);
        return await this.#write(request, settings, placeOf);
      }
      requireMethod(request, settings);
      this.#admit(event, settings);
      place = await placeOf(request);
      return await this.#content(event, place, settings);
    } catch (error) {
      return this.#refused(error, request, settings, place);
    }
  }

  /**
   * As `answer`, for what is no content: within the same bounds. Of methods it has those of `methods`; where that is
   * undefined `work` answers all of them, OPTIONS too. Never rejects.
   */
  async answerBy(
    event: HttpEvent,
    methods: string | undefined,
    work: (settings: GatewaySettings) => Promise<ResponseFields>,
  ): Promise<ResponseFields> {
    const { request } = event;
    const general = this.#settings();
    const own = methods === undefined ? {} : { access_control_allow_methods: methods };
    const settings = { ...general, headers: { ...general.headers, ...own } };
    try {
      if (methods !== undefined) {
        if (request.method === "OPTIONS") return { headers: { ...settings.headers, allow: methods }, body: "" };
        if (!methods.split(", ").includes(request.method)) {
          throw new Refusal(501, `There is no ${request.method} here`, { headers: { allow: methods } });
        }
      }
      this.#admit(event, settings);
      if (!this.#node.isOpen) await this.#node.open();
      return await work(settings);
    } catch (error) {
      return this.#refused(error, request, settings, undefined);
    }
  }

  /** @throws {Refusal} 429 */
  #admit({ request, response }: HttpEvent, { maxRequests }: GatewaySettings): void {
    // Who comes by a Unix socket has no address.
    const wait = request.ip === "" ? 0 : (this.#limit?.()?.take(request.ip) ?? 0);
    if (wait > 0) throw tooFast(wait);
    if (maxRequests > 0 && this.#active >= maxRequests) throw tooMany();
    this.#active += 1;
    response.on_destroy = () => void (this.#active -= 1);
  }

  #write(
    request: HttpRequest,
    settings: GatewaySettings,
    placeOf: (request: HttpRequest) => Place | Promise<Place>,
  ): Promise<ResponseFields> {
    const place = async () => {
      try {
        return await placeOf(request);
      } catch (thrown) {
        // No client sends its body again to the host that a root has: what is read there is written here, too.
        const [, rest] = /^\/ipfs\/(.+)$/s.exec(request.path) ?? [];
        if (!(thrown instanceof Redirect) || rest === undefined) throw thrown;
        return placeOfPath("ipfs", rest, request);
      }
    };
    const isGone = () => request.signal.aborted;
    const reading = () => this.#reading(request, settings, settings.noFetch || this.#node.offline, isGone);
    return writeAnswer({ node: this.#node, request, settings, place, reading });
  }

  #reading(request: HttpRequest, settings: GatewaySettings, offline: boolean, isGone: () => boolean): Reading {
    const { stallTime, totalTime } = settings;
    const deps = { stallTime, totalTime, offline, isGone, blocks: this.#blocks, links: this.links };
    return new Reading(this.#node, request, deps);
  }

  async #content({ request, response }: HttpEvent, place: Place, general: GatewaySettings): Promise<ResponseFields> {
    const { deserialized = general.deserialized } = place;
    const settings = deserialized === general.deserialized ? general : { ...general, deserialized };
    if (!this.#node.isOpen) await this.#node.open();
    const query = queryOf(request);
    const cachedOnly = request.headers.cache_control === "only-if-cached";
    const offline = settings.noFetch || cachedOnly || this.#node.offline;
    const path = contentPath(place);
    const reading = this.#reading(request, settings, offline, () => response.finished);
    const { on_destroy } = response;
    response.on_destroy = () => {
      on_destroy?.();
      reading.over();
    };
    if (response.finished) reading.over();
    try {
      const wanted = formatOf(request, query);
      const asked: Asked = { node: this.#node, request, query, place, path, wanted, settings, reading };
      const answer = await answerContent(asked);
      if (typeof answer.body !== "object" || answer.body instanceof Uint8Array) reading.end();
      return answer;
    } catch (error) {
      const { isLate } = reading;
      reading.end();
      if (isLate) throw tooLate(path, error);
      if (cachedOnly && !(error instanceof Redirect))
        throw new Refusal(412, `${JSON.stringify(path)} not in local datastore`);
      throw offline ? refusalOf(error, path, { offline }) : error;
    }
  }

  #refused(thrown: unknown, request: HttpRequest, settings: GatewaySettings, place: Place | undefined): ResponseFields {
    if (thrown instanceof Redirect) return thrown.answer(settings.headers);
    const path = place === undefined ? request.path : contentPath(place);
    const refusal = refusalOf(thrown, path);
    const shown = refusal instanceof Refusal ? refusal : this.#otherwise(refusal, request);
    const answer = refusalAnswer(shown, request, settings);
    if (place !== undefined) (answer.headers ??= {}).x_ipfs_path = headerText(path);
    return answer;
  }

  /** A fault of ours, of which the log has the words, and nobody else; or there is nobody any more who could be told. */
  #otherwise(thrown: unknown, { id, method, url, signal }: HttpRequest): Refusal {
    if (signal.aborted) return new Refusal(503, "the client has gone");
    const what = thrown instanceof Error ? thrown.stack : String(thrown);
    this.#log.error("request %s %s %s failed: %s", id, method, url.raw_path, what);
    return new Refusal(500, "something is wrong with this gateway");
  }
}

function requireMethod({ method }: HttpRequest, settings: GatewaySettings): void {
  if (method === "GET" || method === "HEAD") return;
  const why = settings.writable ? "it neither reads nor writes" : "read only access";
  throw new Refusal(405, `Method ${method} not allowed: ${why}`, { headers: { allow: methodsOf(settings) } });
}
