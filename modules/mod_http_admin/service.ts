/**
 * Opens services that serve the Admin API only. They run no middleware of apps: the Admin API has
 * its own checks, and a guard that redirects all apps to HTTPS would redirect it to the HTTPS port
 * of the apps.
 */
import { AppMount, environmentOf, type HttpModule, HttpService } from "../../core/http/index.ts";
import type { Module, RouteTable } from "../../core/types.ts";

export interface OwnService {
  /** Names the service in the list of resources that the module releases. */
  readonly label: string;
  /** Route tables by their base paths. */
  readonly tables: Readonly<Record<string, RouteTable>>;
  /** Whether it accepts the forwarding headers of trusted proxies and can serve TLS. */
  readonly isPublic: boolean;
}

/**
 * Opens a service for connections that the caller passes to it. They end when the module is
 * unloaded.
 */
export function openService(module: Module, { label, tables, isPublic }: OwnService): HttpService {
  const { settings, koa, include } = module.depends<HttpModule>("http");
  const service = new HttpService(
    { ...settings, hosts: [], defaultHost: undefined, ...(isPublic ? {} : { trustedProxies: [] }) },
    environmentOf(module),
    isPublic ? module.tls_options() : undefined,
    koa,
  );
  for (const [base, route] of Object.entries(tables)) {
    const provider = { route, streaming_uploads: true };
    service.mount(new AppMount({ name: "admin", owner: module, host: "*", base, provider, cors: undefined }));
  }
  if (isPublic) {
    module.on_release(`requests of the ${label}`, include(service));
    module.hook("certificates-changed", () => void service.secure(module.tls_options()));
  }
  const grace = () => module.get_option_period("unload_grace") ?? 10;
  // Closing starts with the stop of the server, so that it ends within the time for requests in
  // flight.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= service.close(grace()));
  module.hook("server-stopping", () => void close());
  module.on_release(`connections of the ${label}`, close, "listener");
  return service;
}
