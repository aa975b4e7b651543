/** Operations on upstreams in the Admin API: show their state, drain and undrain them. */
import { defineOperation, HttpError } from "../../core/index.ts";
import type { AdminOperation } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import type { ProxiedApps } from "./apps.ts";
import type { Upstream } from "./upstream.ts";

const text = { type: "string" };
const integer = { type: "integer" };
export const shapes = {
  ProxyUpstream: {
    type: "object",
    properties: {
      host: { ...text, description: 'The virtual host of the app; "*" for all' },
      app: text,
      upstream: text,
      state: {
        enum: ["healthy", "unhealthy", "failing", "drained"],
        description: "unhealthy: it fails health checks; failing: it has failed requests, and gets none for a time",
      },
      in_flight: { ...integer, description: "Requests and websockets in progress" },
      requests: { ...integer, description: "Requests and websockets so far" },
      failures: { ...integer, description: "Requests that it failed" },
      last_failure: text,
    },
    required: ["host", "app", "upstream", "state", "in_flight", "requests", "failures"],
  },
};

const input = {
  app: { type: "string", required: true, describe: "Name of the app" },
  upstream: { type: "string", required: true, describe: "The upstream, as it is written in the option" },
  host: { type: "string", describe: "The virtual host of the app; default: the first host that has it" },
} as const;

export function operationsOf(
  proxy: Pick<ProxiedApps, "apps" | "find" | "report">,
  now: () => number,
): AdminOperation[] {
  const shown = (app: ProxiedApp, upstream: Upstream) => ({
    host: app.host,
    app: app.name,
    upstream: upstream.name,
    state: upstream.state(now()),
    in_flight: upstream.inFlight,
    requests: upstream.counts.requests,
    failures: upstream.counts.failures,
    ...(upstream.lastFailure === undefined ? {} : { last_failure: upstream.lastFailure }),
  });
  const switching = (verb: "drain" | "undrain", help: string) =>
    defineOperation({
      name: `http_proxy_${verb}`,
      method: "POST",
      path: `/http_proxy/${verb}`,
      scope: "admin",
      help,
      input,
      response: "ProxyUpstream",
      run({ server, by, input }) {
        const set = async () => {
          const found = proxy.find(input);
          if (found === undefined) {
            const message = `There is no upstream ${input.upstream} of an app ${input.app}`;
            throw new HttpError(404, message, { expose: true });
          }
          found.upstream.drained = verb === "drain";
          proxy.report();
          return shown(found.app, found.upstream);
        };
        return server.record(`${verb} the upstream ${input.upstream} of ${input.app}`, set, { by });
      },
    });
  return [
    defineOperation({
      name: "http_proxy_upstreams",
      method: "GET",
      path: "/http_proxy/upstreams",
      scope: "read",
      help: "The upstreams of proxied apps: their health, and counts of their requests",
      response: { type: "array", items: { $ref: "#/components/schemas/ProxyUpstream" } },
      run: () => [...proxy.apps].flatMap((app) => app.upstreams.map((upstream) => shown(app, upstream))),
    }),
    switching("drain", "Send an upstream no further requests; requests in progress are finished"),
    switching("undrain", "Send requests to a drained upstream again"),
  ];
}
