/** What the route table is made of: apps at their places, their routes, and what is found for a request. */
import type {
  DefaultHeaders,
  Handler,
  HandlerResult,
  HttpProvider,
  MiddlewareProvider,
  Module,
  TokenNeed,
} from "../types.ts";
import type { Usage } from "../util/usage.ts";
import type { CorsPolicy } from "./cors.ts";
import type { OriginPolicy } from "./origins.ts";

/** Where an app is mounted, and what it provides. */
export interface MountPlace {
  readonly name: string;
  /** A name from `hosts`, or "*" for all. */
  readonly host: string;
  /** "" for an app at the root, else `/name` without a trailing slash. */
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider | MiddlewareProvider;
  readonly cors: CorsPolicy | undefined;
  /** Headers for answers that lack them. */
  readonly defaults?: DefaultHeaders | undefined;
  /** Other sites whose pages may open websockets. */
  readonly origins?: OriginPolicy | undefined;
  /** Requests that come when it is retired are not passed over: they are answered, and told at once that it leaves. */
  readonly takesLate?: boolean | undefined;
}

/** A request as the app that answers it knows it. */
export interface ActiveRequest {
  /** Tells what answers the request that its module leaves. */
  retire(): void;
  /** Ends the request at once, whatever its answer has come to. */
  cut(): void;
  /** For people who ask what is being waited for: `GET /path (3 s)`. */
  describe(): string;
  /** On the clock of `performance`. */
  readonly began: number;
  /** It ends when its module leaves: a websocket, an event stream, a handler that has asked for `request.leaving`. */
  readonly endsWhenTold: boolean;
}

/** A mounted app as its routes know it. */
export interface Mount extends MountPlace {
  /** Its place in the order of loading. */
  readonly sequence: number;
  /** True once its module is leaving: requests that began before pass it over. */
  readonly retired: boolean;
  /** What its websockets are closed with then. */
  readonly closeCode: number;
  /** The scope that a request must have a token with; undefined where none is asked for. */
  readonly need: TokenNeed | undefined;
  /** Of the module that it belongs to. */
  readonly usage: Usage;
  /** A request reaches one of its handlers; gives the place that it leaves once it is over. */
  enter(request: ActiveRequest): number;
  leave(place: number): void;
}

export interface RouteInfo {
  /** "*" of middleware. */
  readonly method: string;
  /** Full path, with the final `/*` of a wildcard. */
  readonly path: string;
  readonly host: string;
  readonly app: string;
  readonly module: string;
  readonly kind: "exact" | "wildcard" | "redirect" | "middleware";
}

/** One route of one app. */
export interface Route extends RouteInfo {
  readonly mount: Mount;
  /** Its method and path in one: what figures and traces know it by. */
  readonly key: string;
  readonly handler: Handler | Exclude<HandlerResult, undefined>;
  /** Path as matched: base and key, without the star. */
  readonly prefix: string;
  /** Its place among the routes of the app. */
  readonly order: number;
}

/** A route that matches a request; candidates are tried one after the other (contract, part 4). */
export interface Candidate {
  readonly route: Route;
  /** The wildcard argument; undefined for an exact route. */
  readonly argument: string | undefined;
}

/** Does the route match whatever is below its prefix, too? */
export function isOpen({ kind }: RouteInfo): boolean {
  return kind === "wildcard" || kind === "middleware";
}

/** The same, where anything can be below the prefix: paths have no two slashes in a row. */
export function reachesBelow(route: Route): boolean {
  return isOpen(route) && !route.prefix.endsWith("/");
}

/** Do its handlers take bodies in any content coding, and give answers that may have no type? */
export function takesAnything(route: Pick<Route, "kind" | "mount"> | undefined): boolean {
  return route?.kind === "middleware" || route?.mount.provider.relays === true;
}
