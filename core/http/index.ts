/** `modhost/net/http/server`: serves a table of routes over connections. `mod_http` stands on it; any module may. */
export { type CorsPolicy, corsPolicy } from "./cors.ts";
export { type ParsedKey, parseRouteKey } from "./keys.ts";
export { AppMount, type MountPlace, type RouteInfo } from "./routes.ts";
export { type Explanation, HttpService } from "./service.ts";
export type { HttpEnvironment, HttpSettings } from "./settings.ts";
