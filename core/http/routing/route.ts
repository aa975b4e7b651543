/** Types of the route table: mounted apps, their routes, and the result of a lookup. */
import type {
  DefaultHeaders,
  Handler,
  HandlerResult,
  HttpProvider,
  MiddlewareProvider,
  Module,
  TokenNeed,
} from "../../types.ts";
import type { Usage } from "../../util/usage.ts";
import type { ActiveRequest } from "../message/in_flight.ts";
import type { CorsPolicy } from "../policy/cors.ts";
import type { OriginPolicy } from "../policy/origins.ts";

/** Where an app is mounted, and what it provides. */
export interface MountSettings {
  readonly name: string;
  /** A name from `hosts`, or "*" for all. */
  readonly host: string;
  /** "" for an app at the root, else `/name` without a trailing slash. */
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider | MiddlewareProvider;
  readonly cors: CorsPolicy | undefined;
  /** Headers for responses that lack them. */
  readonly defaults?: DefaultHeaders | undefined;
  /** Other sites whose pages may open websockets. */
  readonly origins?: OriginPolicy | undefined;
  /**
   * Whether the app still serves requests that arrive after it was retired. They learn at once, by
   * `request.leaving`, that the app leaves.
   */
  readonly takesLate?: boolean | undefined;
}

/** A mounted app, as its routes see it. */
export interface Mount extends MountSettings {
  /** Number of the app in the order of loading. */
  readonly sequence: number;
  /** Whether its module is being unloaded. Requests that began before skip it. */
  readonly retired: boolean;
  /** Close code of its websockets when it is retired. */
  readonly closeCode: number;
  /** The scope that the token of a request must have; undefined when none is required. */
  readonly need: TokenNeed | undefined;
  /** The usage account of its module. */
  readonly usage: Usage;
  /**
   * Called when a request reaches one of its handlers. Returns the slot for `leave`, which is
   * called when the request is over.
   */
  enter(request: ActiveRequest): number;
  leave(slot: number): void;
}

export interface RouteInfo {
  /** "*" for middleware, except for the routes of its router. */
  readonly method: string;
  /** Full path, with the final `/*` of a wildcard, or the pattern of a router. */
  readonly path: string;
  readonly host: string;
  readonly app: string;
  readonly module: string;
  readonly kind: "exact" | "wildcard" | "redirect" | "middleware";
}

/** One route of one app. */
export interface Route extends RouteInfo {
  readonly mount: Mount;
  /** Method and path, as metrics and traces name the route. */
  readonly key: string;
  readonly handler: Handler | Exclude<HandlerResult, undefined>;
  /** Path as matched: base and key, without the star. */
  readonly prefix: string;
  /** Position of the route among the routes of its app. */
  readonly order: number;
}

/** A route that matches a request; candidates are tried one after the other (contract, part 4). */
export interface Candidate {
  readonly route: Route;
  /** The wildcard argument; undefined for an exact route. */
  readonly argument: string | undefined;
}

/** Whether the route also matches everything below its prefix. */
export function isOpen({ kind }: RouteInfo): boolean {
  return kind === "wildcard" || kind === "middleware";
}

/**
 * Whether the route matches paths below its prefix, and such paths can exist: a path has no two
 * slashes in a row.
 */
export function reachesBelow(route: Route): boolean {
  return isOpen(route) && !route.prefix.endsWith("/");
}

/**
 * Whether its handlers accept bodies in any content coding, and may send responses without a type.
 */
export function takesAnything(route: Pick<Route, "kind" | "mount"> | undefined): boolean {
  return route?.kind === "middleware" || route?.mount.provider.relays === true;
}
