/**
 * Reports the health of the server to supervisors and load balancers: `/health/live` and
 * `/health/ready`.
 */
import { actAs, reasonOf } from "../../core/index.ts";
import type { HealthItem, HttpEvent, Module, ModuleState, OwnedItem } from "../../core/types.ts";
import { options } from "./options.ts";

export { options };
export const global = true;
export const shared = true;
export const depends = ["http"];

export default function load(module: Module): void {
  let state: "starting" | "ready" | "stopping" = "starting";
  const optional = module.get_option_array("http_health_optional") ?? [];
  /**
   * The modules in the configuration. A module that is loaded later for a trial does not make the
   * server unready.
   */
  let configured = new Set<string>();
  module.ready = () => {
    if (state !== "starting") return;
    configured = new Set(module.modules().map(({ name }) => name));
    state = "ready";
  };
  // Runs while connections are still accepted, so that load balancers stop sending requests here.
  module.hook("server-leaving", () => {
    state = "stopping";
  });

  const problems = new Set<OwnedItem<HealthItem>>();
  module.handle_items(
    "health-provider",
    (item) => problems.add(item),
    (item) => problems.delete(item),
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
    const reasons = [...problems].map(problemOf).filter((reason) => reason !== undefined);
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

/** Returns the problem that a module reports. A check that throws is a problem, too. */
function problemOf({ item, owner }: OwnedItem<HealthItem>): string | undefined {
  try {
    return actAs(owner, () => item.problem());
  } catch (error) {
    return `the health check of ${owner.name} failed: ${reasonOf(error)}`;
  }
}
