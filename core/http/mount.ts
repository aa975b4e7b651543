import type { DefaultHeaders, HttpProvider, MiddlewareProvider, Module, TokenNeed } from "../types.ts";
import { type Usage, usageOf } from "../util/usage.ts";
import { AppRoutes } from "./app_routes.ts";
import type { CorsPolicy } from "./cors.ts";
import { type ActiveRequests, InFlight } from "./in_flight.ts";
import type { OriginPolicy } from "./origins.ts";
import type { ActiveRequest, Mount, MountPlace } from "./route.ts";
import { needOf } from "./token_check.ts";

let mounted = 0;

/** A provider put at its place: what the route table is built from. Knows the requests that it is answering. */
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
  constructor(place: MountPlace) {
    this.name = place.name;
    this.host = place.host;
    this.base = place.base;
    this.owner = place.owner;
    this.usage = usageOf(place.owner);
    this.provider = place.provider;
    this.need = needOf(place.provider.auth, place.name);
    this.cors = place.cors;
    this.defaults = place.defaults;
    this.origins = place.origins;
    this.takesLate = place.takesLate === true;
    this.routes = new AppRoutes(this);
  }

  /**
   * Goes by other options from now on: what is being answered goes on, and a table that is built from now on has the new
   * place.
   */
  move({ base, cors, defaults, origins }: Pick<MountPlace, "base" | "cors" | "defaults" | "origins">): void {
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
    const place = this.#inFlight.enter(request);
    this.#list?.add(this);
    if (this.retired) request.retire();
    return place;
  }

  leave(place: number): void {
    this.#inFlight.leave(place);
    if (this.#list !== undefined && this.active.size === 0) this.#list.delete(this);
  }

  /** It is in this list while it has requests, and in no other; undefined: in none. */
  listIn(list: Set<AppMount> | undefined): void {
    this.#list?.delete(this);
    this.#list = list;
    if (this.active.size > 0) list?.add(this);
  }

  /**
   * Resolves when the last request is over; those still there after `grace` seconds are cut off. Websockets are closed
   * with `closeCode`: going away, or service restart (1012).
   */
  retire(grace: number, closeCode = 1001): Promise<void> {
    this.retired = true;
    this.closeCode = closeCode;
    return this.#inFlight.retire(grace, (names) => {
      this.owner.log.warn("Cut off, since they had not ended after %d s: %s", grace, names);
    });
  }
}
