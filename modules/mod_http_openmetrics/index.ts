/** Figures of the server and its modules for Prometheus: `/metrics`, and `/debug/metrics/prometheus` as go-ipfs has it. */
import { packageVersion } from "../../core/index.ts";
import type { Handler, Module, RouteTable } from "../../core/types.ts";
import { accessOf } from "./access.ts";
import { certificateFigures } from "./certificates.ts";
import { contentTypes, expose, type Family, formatFor } from "./exposition.ts";
import { moduleFigures } from "./modules.ts";
import { options } from "./options.ts";
import { gcFigures, processFigures } from "./process.ts";
import { type FiguresElsewhere, Registry } from "./registry.ts";
import { requestFigures } from "./requests.ts";
import { tokenFigures } from "./tokens.ts";

export { options };
export const global = true;
export const shared = true;
export const depends = ["http"];

/** What `module.depends("http_openmetrics")` gives. */
export interface OpenMetrics {
  /** All figures as they are now, sorted by name. */
  collect(): Promise<Family[]>;
}

/** Where go-ipfs has its figures. */
const REFERENCE_PATH = "/debug/metrics/prometheus";

export default function load(module: Module): OpenMetrics {
  const mayRead = accessOf(module);
  const modules = moduleFigures(module);
  const registry = new Registry(module.get_option_period("openmetrics_timeout") ?? 5, modules.failed);
  module.handle_items(
    "metrics-provider",
    (item) => registry.add(item),
    (item) => registry.remove(item),
  );
  const ends = new Map<object, () => void>();
  module.handle_items(
    "metrics-elsewhere",
    (item) => ends.set(item, registry.beside(item.item as FiguresElsewhere)),
    (item) => ends.get(item)?.(),
  );
  module.provides("metrics", modules.provider);
  module.provides("metrics", certificateFigures(module));
  module.provides("metrics", requestFigures(module));
  module.provides("metrics", tokenFigures(module));
  module.provides("metrics", processFigures(module, packageVersion()));
  module.provides("metrics", gcFigures(module));

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
    const format = formatFor(request.headers.accept);
    headers.content_type = contentTypes[format];
    headers.vary = "Accept";
    return expose(await registry.collect(), format);
  };
  const reference: RouteTable = { GET: show, POST: show };
  module.provides("http", { default_path: "/metrics", route: { GET: show } });
  module.provides("http", { default_path: REFERENCE_PATH, route: reference });
  // Where the API of the node has ports of its own, it is there that go-ipfs has them.
  module.add_item("rpc-page", { path: REFERENCE_PATH, route: reference });
  return { collect: () => registry.collect() };
}
