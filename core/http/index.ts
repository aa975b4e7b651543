/** `modhost/net/http/server`: serves a table of routes over connections. `mod_http` stands on it; any module may. */
export { precondition, rangeHolds, type Validators, validatorsOf } from "./conditions.ts";
export { type CorsPolicy, corsPolicy } from "./cors.ts";
export { type ParsedKey, parseRouteKey } from "./keys.ts";
export type { HttpModule } from "./module.ts";
export { preferredType } from "./negotiate.ts";
export { encodePath } from "./paths.ts";
export { appName, appPath, basePath, bracketed, displayName, isWebScheme, originOf } from "./places.ts";
export { type ByteRange, byteRanges, parseRanges } from "./ranges.ts";
export { AppMount, type MountPlace, type RouteInfo } from "./routes.ts";
export { type Explanation, HttpService } from "./service.ts";
export type { HttpEnvironment, HttpSettings } from "./settings.ts";
