/**
 * Exposes metrics of the server and its modules to Prometheus: at `/metrics`, and at
 * `/debug/metrics/prometheus` as go-ipfs does.
 */
import { packageVersion } from "../../core/index.ts";
import type { Handler, Module, RouteTable } from "../../core/types.ts";
import { accessOf } from "./access.ts";
import { certificateMetricsProvider } from "./certificates.ts";
import { contentTypes, expose, type Family, formatFor } from "./exposition.ts";
import { moduleMetricsProvider } from "./modules.ts";
import { options } from "./options.ts";
import { gcProvider, processMetricsProvider } from "./process.ts";
import { type MetricsSource, Registry } from "./registry.ts";
import { requestMetricsProvider } from "./requests.ts";
import { scopes } from "./scopes.ts";
import { tokenMetricsProvider } from "./tokens.ts";

export { options };
export const global = true;
export const shared = true;
export const depends = ["http"];

/** The exports of the module, as `module.depends("http_openmetrics")` returns them. */
export interface OpenMetrics {
  /** Resolves to all current metrics, sorted by name. */
  collect(): Promise<Family[]>;
}

/** The path of the metrics in go-ipfs. */
const REFERENCE_PATH = "/debug/metrics/prometheus";

export default function load(module: Module): OpenMetrics {
  const mayRead = accessOf(module);
  const modules = moduleMetricsProvider(module);
  const registry = new Registry(module.get_option_period("openmetrics_timeout") ?? 5, modules.failed);
  module.handle_items(
    "metrics-provider",
    (item) => registry.add(item),
    (item) => registry.remove(item),
  );
  const ends = new Map<object, () => void>();
  module.handle_items(
    "metrics-elsewhere",
    (item) => ends.set(item, registry.addSource(item.item as MetricsSource)),
    (item) => ends.get(item)?.(),
  );
  for (const kind of scopes) module.provides("token-scope", kind);
  module.provides("metrics", modules.provider);
  module.provides("metrics", certificateMetricsProvider(module));
  module.provides("metrics", requestMetricsProvider(module));
  module.provides("metrics", tokenMetricsProvider(module));
  module.provides("metrics", processMetricsProvider(module, packageVersion()));
  module.provides("metrics", gcProvider(module));

  const show: Handler = async ({ request, response }) => {
    const { headers } = response;
    headers.cache_control = "no-store";
    const refusal = mayRead(request);
    if (refusal !== undefined) {
      headers.content_type = "text/plain; charset=utf-8";
      const { status, message } = refusal;
      return {
        status_code: status,
        headers: refusal.headers,
        body: `${status}${status === 403 ? " Forbidden" : ""}: ${message}\n`,
      };
    }
    const format = formatFor(request.header("accept"));
    headers.content_type = contentTypes[format];
    headers.vary = "Accept";
    return expose(await registry.collect(), format);
  };
  const reference: RouteTable = { GET: show, POST: show };
  module.provides("http", { default_path: "/metrics", route: { GET: show } });
  module.provides("http", { default_path: REFERENCE_PATH, route: reference });
  // If the node's API has its own ports, go-ipfs serves the metrics there.
  module.add_item("rpc-page", { path: REFERENCE_PATH, route: reference });
  // Callers on this machine need no token, so the gateway must keep content out of this origin.
  module.add_item("trusts-own-origin", {});
  return { collect: () => registry.collect() };
}
