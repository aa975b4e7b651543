/** Tells supervisors and load balancers how the server is: `/health/live` and `/health/ready`. */
import type { HealthItem, HttpEvent, Module, ModuleState } from "../../core/types.ts";
import { options } from "./options.ts";

export { options };
export const global = true;
export const shared = true;
export const depends = ["http"];

export default function load(module: Module): void {
  let state: "starting" | "ready" | "stopping" = "starting";
  const optional = module.get_option_array("http_health_optional") ?? [];
  /** What the configuration asks for: a module that somebody tries out later makes no server unready. */
  let configured = new Set<string>();
  module.ready = () => {
    if (state !== "starting") return;
    configured = new Set(module.modules().map(({ name }) => name));
    state = "ready";
  };
  // Fired while connections are still taken, so that balancers send no new work here.
  module.hook("server-leaving", () => {
    state = "stopping";
  });

  const problems = new Set<HealthItem["problem"]>();
  module.handle_items(
    "health-provider",
    ({ item }) => problems.add(item.problem),
    ({ item }) => problems.delete(item.problem),
  );

  function live({ response }: HttpEvent): string {
    Object.assign(response.headers, { content_type: "text/plain; charset=utf-8", cache_control: "no-store" });
    return "ok\n";
  }

  function ready({ response }: HttpEvent) {
    const states = module.modules();
    const named = (status: ModuleState["status"]) =>
      [...new Set(states.filter((state) => state.status === status).map(({ name }) => name))].sort();
    const failed = named("failed");
    const isIncomplete = failed.some((name) => configured.has(name) && !optional.includes(name));
    const reasons = [...problems].map((problem) => problem()).filter((reason) => reason !== undefined);
    const isImpaired = isIncomplete || reasons.length > 0;
    const shown = state !== "ready" || !isImpaired ? state : isIncomplete ? "incomplete" : "impaired";
    const body = {
      ready: shown === "ready",
      state: shown,
      failed,
      quarantined: named("quarantined"),
      ...(reasons.length === 0 ? {} : { reasons }),
    };
    Object.assign(response.headers, { content_type: "application/json; charset=utf-8", cache_control: "no-store" });
    return { status_code: body.ready ? 200 : 503, body: `${JSON.stringify(body)}\n` };
  }

  module.provides("http", { route: { "GET /live": live, "GET /ready": ready } });
}
