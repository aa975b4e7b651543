/**
 * Every type that a module author sees, and no logic. Names follow the specification's spelling
 * (snake_case on the module, event, request and response objects); "spec n" is part n of the
 * specification, as `docs/reference/contract.md` states it.
 */
export type * from "./types/admin.ts";
export type * from "./types/backup.ts";
export type * from "./types/certificate.ts";
export type * from "./types/change.ts";
export type * from "./types/config.ts";
export type * from "./types/events.ts";
export type * from "./types/exchange.ts";
export type * from "./types/handler_result.ts";
export type * from "./types/health.ts";
export type * from "./types/metrics.ts";
export type * from "./types/middleware.ts";
export type * from "./types/module.ts";
export type * from "./types/options.ts";
export type * from "./types/permissions.ts";
export type * from "./types/plan.ts";
export type * from "./types/presented_token.ts";
export type * from "./types/provider.ts";
export type * from "./types/routes.ts";
export type * from "./types/server.ts";
export type * from "./types/sse.ts";
export type * from "./types/start_page.ts";
export type * from "./types/state.ts";
export type * from "./types/token_scope.ts";
export type * from "./types/tokens.ts";
export type * from "./types/traces.ts";
export type * from "./types/websocket.ts";
