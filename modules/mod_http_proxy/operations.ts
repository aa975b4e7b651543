/** Operations on upstreams in the Admin API: show their state, drain and undrain them. */
import { defineOperation, HttpError } from "../../core/index.ts";
import type { AdminOperation } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import type { Upstream } from "./upstream.ts";

export interface OperationsDeps {
  readonly apps: () => Iterable<ProxiedApp>;
  readonly now: () => number;
  /** Called when an upstream has been drained or undrained. */
  changed(): void;
}

const text = { type: "string" };
const integer = { type: "integer" };
export const shapes = {
  ProxyUpstream: {
    type: "object",
    properties: {
      host: { ...text, description: 'The virtual host that the app is of; "*" for all' },
      app: text,
      upstream: text,
      state: {
        enum: ["healthy", "unhealthy", "failing", "drained"],
        description: "unhealthy: by its answers to checks; failing: it has failed requests, and gets none for a time",
      },
      in_flight: { ...integer, description: "Requests and websockets that it has now" },
      requests: { ...integer, description: "Those that it got so far" },
      failures: { ...integer, description: "Those that it failed" },
      last_failure: text,
    },
    required: ["host", "app", "upstream", "state", "in_flight", "requests", "failures"],
  },
};

const input = {
  app: { type: "string", required: true, describe: "Name of the app" },
  upstream: { type: "string", required: true, describe: "The upstream, as the option has it" },
  host: { type: "string", describe: "The virtual host whose app it is; default: the first that has it" },
} as const;

export function operationsOf({ apps, now, changed }: OperationsDeps): AdminOperation[] {
  const shown = (app: ProxiedApp, upstream: Upstream) => ({
    host: app.host,
    app: app.name,
    upstream: upstream.name,
    state: upstream.state(now()),
    in_flight: upstream.inFlight,
    requests: upstream.requests,
    failures: upstream.failures,
    ...(upstream.lastFailure === undefined ? {} : { last_failure: upstream.lastFailure }),
  });
  const find = (wanted: { readonly app: string; readonly upstream: string; readonly host: string | undefined }) => {
    for (const app of apps()) {
      if (app.name !== wanted.app || (wanted.host !== undefined && app.host !== wanted.host)) continue;
      const upstream = app.find(wanted.upstream);
      if (upstream !== undefined) return { app, upstream };
    }
    throw new HttpError(404, `There is no upstream ${wanted.upstream} of an app ${wanted.app}`, { expose: true });
  };
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
        const set = () => {
          const { app, upstream } = find(input);
          upstream.drained = verb === "drain";
          changed();
          return shown(app, upstream);
        };
        return server.record(`${verb} the upstream ${input.upstream} of ${input.app}`, async () => set(), { by });
      },
    });
  return [
    defineOperation({
      name: "http_proxy_upstreams",
      method: "GET",
      path: "/http_proxy/upstreams",
      scope: "read",
      help: "The servers that answer for proxied apps: health, what they have in flight, and what they failed",
      response: { type: "array", items: { $ref: "#/components/schemas/ProxyUpstream" } },
      run: () => [...apps()].flatMap((app) => app.upstreams.map((upstream) => shown(app, upstream))),
    }),
    switching("drain", "Send an upstream no further requests; those that it has go on"),
    switching("undrain", "Send a drained upstream requests again"),
  ];
}
