/** Tells supervisors and load balancers how the server is: `/health/live` and `/health/ready`. */
import type { HttpEvent, Module } from "../../core/types.ts";

export const global = true;
export const depends = ["http"];

export default function load(module: Module): void {
  let state: "starting" | "ready" | "stopping" = "starting";
  module.ready = () => {
    if (state === "starting") state = "ready";
  };
  // Fired before connections are drained, so that no new work is sent here meanwhile.
  module.hook("server-stopping", () => {
    state = "stopping";
  });

  function live({ response }: HttpEvent): string {
    Object.assign(response.headers, { content_type: "text/plain; charset=utf-8", cache_control: "no-store" });
    return "ok\n";
  }

  function ready({ response }: HttpEvent) {
    const failed = module.modules().filter(({ status }) => status === "failed");
    const body = { ready: state === "ready", state, failed: [...new Set(failed.map(({ name }) => name))].sort() };
    Object.assign(response.headers, { content_type: "application/json; charset=utf-8", cache_control: "no-store" });
    return { status_code: body.ready ? 200 : 503, body: `${JSON.stringify(body)}\n` };
  }

  module.provides("http", { route: { "GET /live": live, "GET /ready": ready } });
}
