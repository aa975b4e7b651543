import type { DefaultHeaders, HttpProvider, MiddlewareProvider, Module, TokenNeed } from "../../types.ts";
import { type Usage, usageOf } from "../../util/usage.ts";
import { type ActiveRequest, type ActiveRequests, InFlight } from "../message/in_flight.ts";
import type { CorsPolicy } from "../policy/cors.ts";
import type { OriginPolicy } from "../policy/origins.ts";
import { needOf } from "../policy/token_check.ts";
import { AppRoutes } from "./app_routes.ts";
import type { Mount, MountSettings } from "./route.ts";

let mounted = 0;

/** A mounted provider, with its requests in progress. The route table is built from these. */
export class AppMount implements Mount {
  readonly name: string;
  readonly host: string;
  base: string;
  readonly owner: Module;
  readonly provider: HttpProvider | MiddlewareProvider;
  cors: CorsPolicy | undefined;
  defaults: DefaultHeaders | undefined;
  origins: OriginPolicy | undefined;
  routes: AppRoutes;
  readonly takesLate: boolean;
  readonly sequence = ++mounted;
  readonly need: TokenNeed | undefined;
  readonly usage: Usage;
  retired = false;
  closeCode = 1001;
  readonly #inFlight = new InFlight();
  #list: Set<AppMount> | undefined;

  /** @throws {ModhostError} ROUTE_INVALID, MIDDLEWARE_INVALID */
  constructor(settings: MountSettings) {
    this.name = settings.name;
    this.host = settings.host;
    this.base = settings.base;
    this.owner = settings.owner;
    this.usage = usageOf(settings.owner);
    this.provider = settings.provider;
    this.need = needOf(settings.provider.auth, settings.name);
    this.cors = settings.cors;
    this.defaults = settings.defaults;
    this.origins = settings.origins;
    this.takesLate = settings.takesLate === true;
    this.routes = new AppRoutes(this);
  }

  /**
   * Applies other options. Requests in progress continue, and the next route table has the new
   * path.
   */
  move({ base, cors, defaults, origins }: Pick<MountSettings, "base" | "cors" | "defaults" | "origins">): void {
    this.cors = cors;
    this.defaults = defaults;
    this.origins = origins;
    if (base === this.base) return;
    this.base = base;
    this.routes = new AppRoutes(this);
  }

  /** Requests that reached one of its handlers and are not over. */
  get active(): ActiveRequests {
    return this.#inFlight.active;
  }

  enter(request: ActiveRequest): number {
    this.usage.requests += 1;
    const slot = this.#inFlight.enter(request);
    this.#list?.add(this);
    if (this.retired) request.retire();
    return slot;
  }

  leave(slot: number): void {
    this.#inFlight.leave(slot);
    if (this.#list !== undefined && this.active.size === 0) this.#list.delete(this);
  }

  /**
   * Adds this mount to `list` while it has requests, and removes it from its previous list. With
   * undefined, it is in no list.
   */
  listIn(list: Set<AppMount> | undefined): void {
    this.#list?.delete(this);
    this.#list = list;
    if (this.active.size > 0) list?.add(this);
  }

  /**
   * Resolves when the last request is over. Requests that remain after `grace` seconds are cut off.
   * Websockets are closed with `closeCode`: going away, or service restart (1012).
   */
  retire(grace: number, closeCode = 1001): Promise<void> {
    this.retired = true;
    this.closeCode = closeCode;
    return this.#inFlight.retire(grace, (names) => {
      this.owner.log.warn("Cut off requests that had not ended after %d s: %s", grace, names);
    });
  }
}
