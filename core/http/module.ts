import type { RouteInfo } from "./routes.ts";
import type { Explanation } from "./service.ts";
import type { HttpSettings } from "./settings.ts";

/** What `module.depends<HttpModule>("http")` gives, and `host.exports("http")`. */
export interface HttpModule {
  /** Every route that is served, host by host. */
  routes(): RouteInfo[];
  /** How a request would be answered, and why; `authority` is the host name that it gives. */
  explain(method: string, path: string, authority?: string): Explanation;
  /** What it was told by its options, for services of other modules that shall have the same limits. */
  readonly settings: HttpSettings;
}
