/** One gateway. It checks a request in the order of the public specifications. */
import type { NodeModule } from "modhost/node";
import type { RateLimit } from "../../core/http/index.ts";
import type { HttpEvent, HttpRequest, ModuleLog, ResponseFields } from "../../core/types.ts";
import { type ContentTarget, contentPath } from "./content_target.ts";
import { Refusal, refusalOf, tooFast, tooLate, tooMany } from "./errors/refusal.ts";
import { refusalResponse } from "./errors/response.ts";
import type { GatewayCall } from "./gateway_call.ts";
import { headerText } from "./headers/content.ts";
import { DnsLinks } from "./hosts/dns_links.ts";
import { PathBlocks } from "./path_blocks.ts";
import { Reading } from "./reading.ts";
import { formatOf } from "./request/format.ts";
import { targetOfPath } from "./request/path.ts";
import { queryOf } from "./request/query.ts";
import { Redirect } from "./request/redirect.ts";
import { respondWithContent } from "./responses/index.ts";
import type { GatewaySettings } from "./settings.ts";
import { refuseWorker, sandboxed } from "./shared_origin.ts";
import { isWriting, writeResponse } from "./write.ts";

export interface GatewayDeps {
  readonly node: NodeModule;
  readonly log: ModuleLog;
  /** Returns the current settings. */
  readonly settings: () => GatewaySettings;
  /** Returns the current rate limit per client. */
  readonly limit?: () => RateLimit | undefined;
  /**
   * Whether apps that trust pages of their own origin share the origin of this gateway's paths;
   * never by default.
   */
  readonly sharesOrigin?: () => boolean;
}

const methodsOf = ({ writable }: GatewaySettings): string =>
  writable ? "GET, HEAD, OPTIONS, POST, PUT, DELETE" : "GET, HEAD, OPTIONS";

export class Gateway {
  readonly #node: NodeModule;
  readonly #log: ModuleLog;
  readonly #settings: () => GatewaySettings;
  readonly #limit: GatewayDeps["limit"];
  readonly #sharesOrigin: () => boolean;
  readonly #blocks: PathBlocks;
  readonly links: DnsLinks;
  /** Number of requests in flight. */
  #active = 0;

  constructor({ node, log, settings, limit, sharesOrigin = () => false }: GatewayDeps) {
    this.#node = node;
    this.#log = log;
    this.#settings = settings;
    this.#limit = limit;
    this.#sharesOrigin = sharesOrigin;
    this.#blocks = new PathBlocks(node);
    this.links = new DnsLinks(node);
  }

  /**
   * Responds to a request of any method. `targetOf` determines the requested content. Never
   * rejects.
   */
  async respond(
    event: HttpEvent,
    targetOf: (request: HttpRequest) => ContentTarget | Promise<ContentTarget>,
  ): Promise<ResponseFields> {
    const { request } = event;
    const settings = this.#settings();
    let target: ContentTarget | undefined;
    const isolated = (response: ResponseFields) =>
      target?.website === undefined && this.#sharesOrigin() ? sandboxed(response) : response;
    try {
      if (request.method === "OPTIONS")
        return { headers: { ...settings.headers, allow: methodsOf(settings) }, body: "" };
      if (settings.writable && isWriting(request)) {
        this.#admit(event, settings);
        return await this.#write(request, settings, targetOf);
      }
      requireMethod(request, settings);
      requireEscapes(request);
      this.#admit(event, settings);
      target = await targetOf(request);
      if (target.website === undefined && this.#sharesOrigin()) refuseWorker(request);
      return isolated(await this.#content(event, target, settings));
    } catch (error) {
      return isolated(this.#refused(error, request, settings, target));
    }
  }

  /**
   * Responds to requests for other things than content, within the same limits. Only the methods in
   * `methods` are allowed; if it is undefined, `work` handles every method, including OPTIONS.
   * Never rejects.
   */
  async respondWith(
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
          throw new Refusal(501, `The method ${request.method} is not supported here`, { headers: { allow: methods } });
        }
      }
      this.#admit(event, settings);
      if (!this.#node.isOpen) await this.#node.open();
      return await work(settings);
    } catch (error) {
      return this.#refused(error, request, settings, undefined);
    }
  }

  /** Refuses a request over the limits. @throws {Refusal} 429 */
  #admit({ request, response }: HttpEvent, { maxRequests }: GatewaySettings): void {
    // Callers at a Unix socket have no address, so there is no limit for them.
    const wait = request.ip === "" ? 0 : (this.#limit?.()?.take(request.ip) ?? 0);
    if (wait > 0) throw tooFast(wait);
    if (maxRequests > 0 && this.#active >= maxRequests) throw tooMany();
    this.#active += 1;
    response.on_destroy = () => void (this.#active -= 1);
  }

  #write(
    request: HttpRequest,
    settings: GatewaySettings,
    targetOf: (request: HttpRequest) => ContentTarget | Promise<ContentTarget>,
  ): Promise<ResponseFields> {
    const target = async () => {
      try {
        return await targetOf(request);
      } catch (thrown) {
        // Clients do not send a body again to the redirect target, the root's own host. So the
        // request is handled here as for a path.
        const [, rest] = /^\/ipfs\/(.+)$/s.exec(request.path) ?? [];
        if (!(thrown instanceof Redirect) || rest === undefined) throw thrown;
        return targetOfPath("ipfs", rest, request);
      }
    };
    const isGone = () => request.signal.aborted;
    const reading = () => this.#reading(request, settings, settings.noFetch || this.#node.offline, isGone);
    return writeResponse({ node: this.#node, request, settings, target, reading });
  }

  #reading(request: HttpRequest, settings: GatewaySettings, offline: boolean, isGone: () => boolean): Reading {
    const { stallTime, totalTime } = settings;
    const deps = { stallTime, totalTime, offline, isGone, blocks: this.#blocks, links: this.links };
    return new Reading(this.#node, request, deps);
  }

  async #content(
    { request, response }: HttpEvent,
    target: ContentTarget,
    general: GatewaySettings,
  ): Promise<ResponseFields> {
    const { deserialized = general.deserialized } = target;
    const settings = deserialized === general.deserialized ? general : { ...general, deserialized };
    if (!this.#node.isOpen) await this.#node.open();
    const query = queryOf(request);
    const cachedOnly = request.header("cache-control") === "only-if-cached";
    const offline = settings.noFetch || cachedOnly || this.#node.offline;
    const path = contentPath(target);
    const reading = this.#reading(request, settings, offline, () => response.finished);
    const { on_destroy } = response;
    response.on_destroy = () => {
      on_destroy?.();
      reading.over();
    };
    if (response.finished) reading.over();
    try {
      const wanted = formatOf(request, query);
      const call: GatewayCall = { node: this.#node, request, query, target, path, wanted, settings, reading };
      const response = await respondWithContent(call);
      if (typeof response.body !== "object" || response.body instanceof Uint8Array) reading.end();
      return response;
    } catch (error) {
      const { isLate } = reading;
      reading.end();
      if (isLate) throw tooLate(path, error);
      if (cachedOnly && !(error instanceof Redirect))
        throw new Refusal(412, `${JSON.stringify(path)} not in local datastore`);
      throw offline ? refusalOf(error, path, { offline }) : error;
    }
  }

  #refused(
    thrown: unknown,
    request: HttpRequest,
    settings: GatewaySettings,
    target: ContentTarget | undefined,
  ): ResponseFields {
    if (thrown instanceof Redirect) return thrown.response(settings.headers);
    const path = target === undefined ? request.path : contentPath(target);
    const refusal = refusalOf(thrown, path);
    const shown = refusal instanceof Refusal ? refusal : this.#otherwise(refusal, request);
    const response = refusalResponse(shown, request, settings);
    if (target !== undefined) (response.headers ??= {}).x_ipfs_path = headerText(path);
    return response;
  }

  /**
   * For a fault of the server, writes the details only to the log. If the client has disconnected,
   * nobody sees the response.
   */
  #otherwise(thrown: unknown, { id, method, url, signal }: HttpRequest): Refusal {
    if (signal.aborted) return new Refusal(503, "the client has disconnected");
    const what = thrown instanceof Error ? thrown.stack : String(thrown);
    this.#log.error("request %s %s %s failed: %s", id, method, url.raw_path, what);
    return new Refusal(500, "this gateway has an internal error");
  }
}

function requireMethod({ method }: HttpRequest, settings: GatewaySettings): void {
  if (method === "GET" || method === "HEAD") return;
  const why = settings.writable ? "it neither reads nor writes" : "read only access";
  throw new Refusal(405, `Method ${method} not allowed: ${why}`, { headers: { allow: methodsOf(settings) } });
}

/**
 * Programs interpret an invalid percent escape in different ways, so such a path must not match
 * anything.
 */
function requireEscapes({ url }: HttpRequest): void {
  const [bad] = /%(?![0-9a-f]{2}).{0,2}/i.exec(url.raw_path) ?? [];
  if (bad !== undefined)
    throw new Refusal(400, `invalid URL escape ${JSON.stringify(bad)}: write %25 for a percent sign`);
}
