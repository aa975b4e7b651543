import type { Config } from "../config/index.ts";
import { originOf } from "../http/policy/origins.ts";
import { appPath, displayName } from "../http/routing/app_urls.ts";
import type { ListeningPort, ModuleLog } from "../types.ts";

export interface UrlContext {
  readonly config: Config;
  /** A name from `hosts`, or "*". */
  readonly host: string;
  readonly log: ModuleLog;
  listening(): readonly ListeningPort[];
}

/**
 * Returns the URL under which clients find an app: `http_external_url` followed by the app's path,
 * else the HTTPS port, else the HTTP port. A path that is configured with a trailing slash keeps
 * it; the default, `/<app>`, has none.
 */
export function httpUrl(context: UrlContext, app: string, defaultPath?: string): string {
  const { config, host } = context;
  const own = host === "*" ? undefined : host;
  const paths = (config.value("http_paths", own) ?? {}) as Record<string, unknown>;
  const path = appPath(app, host, paths[app] ?? defaultPath);
  const external = config.value("http_external_url", own);
  if (typeof external === "string") return external.replace(/\/+$/, "") + path;

  const service = serviceOf(context);
  if (service === undefined) {
    context.log.warn("http_url: neither https_ports nor http_ports has a port");
    return "http://disabled.invalid/";
  }
  const { scheme, address, port } = service;
  const fallback = config.value("http_default_host");
  const name = own ?? (typeof fallback === "string" ? fallback : displayName(address));
  // Port 0 is not open yet, so the URL has no port. Requests of the host itself and of tests omit
  // it, too.
  return (port === 0 ? `${scheme}://${name}` : originOf(scheme, name, port)) + path;
}

/** Returns an open port, HTTPS before HTTP; before ports are open, the first configured one. */
function serviceOf({ config, listening }: UrlContext) {
  const open = listening();
  for (const scheme of ["https", "http"]) {
    const found = open.find((port) => port.scheme === scheme);
    if (found !== undefined) return { scheme, address: found.address, port: found.port };
  }
  for (const scheme of ["https", "http"]) {
    const [port] = list(config.value(`${scheme}_ports`));
    const [address = "*"] = list(config.value(`${scheme}_interfaces`));
    if (open.length === 0 && port !== undefined) return { scheme, address: String(address), port: Number(port) };
  }
  return undefined;
}

function list(value: unknown): unknown[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}
