/**
 * The ports of the dashboard and the Admin API, which give both an origin of their own. Apps are
 * code and content of strangers, and can use everything in their own origin. So the ports of apps
 * only redirect to the dashboard.
 */
import { encodePath, httpMethods, strangerReason } from "../../core/http/index.ts";
import { json } from "../../core/index.ts";
import type { Handler, HttpRequest, Module, ResponseFields, RouteTable } from "../../core/types.ts";
import { isNavigation, isOfBrowser, wantsPage } from "./dashboard/keys.ts";
import { dashboardUrls } from "./dashboard/urls.ts";
import { openService } from "./service.ts";

export function openPorts(module: Module, route: RouteTable): void {
  const root: RouteTable = { "GET /": () => ({ status_code: 302, headers: { location: "/admin/" } }) };
  const service = openService(module, {
    label: "admin ports",
    tables: { "/admin": route, "": root },
    isPublic: true,
  });
  let isMissing = false;
  module.provides("net", {
    name: "admin",
    default_ports: [],
    half_open: true,
    failed(reason) {
      isMissing = true;
      const rest = "Commands still reach the server through the admin socket";
      module.set_status("warn", `The dashboard and the Admin API have no port. ${reason}. ${rest}`);
    },
    onconnect: (socket) => service.listeners.connect(socket),
  });
  module.provides("net", {
    name: "admin_https",
    default_ports: [],
    onconnect: (socket) => service.listeners.connectSecure(socket),
  });
  // The host opens and closes the ports, so a warning that the port is missing may have become
  // wrong.
  module.changed = () => {
    const [address] = dashboardUrls(module.listening());
    if (!isMissing || address === undefined) return;
    isMissing = false;
    module.set_status("info", `The dashboard is at ${address}`);
  };
}

/**
 * Routes below `/admin` at the ports of apps: they redirect browsers on this machine to the
 * dashboard.
 */
export function redirectRoutes(module: Module): RouteTable {
  const hosts = new Set((module.get_option_array("admin_hosts") ?? []).map((name) => name.toLowerCase()));
  const redirect = ({ request }: { readonly request: HttpRequest }, rest: string): ResponseFields | undefined => {
    const [address] = dashboardUrls(module.listening());
    // Other callers learn nothing: another app may serve the path, else they get 404.
    if (address === undefined || strangerReason(request, { hosts }) !== undefined) return undefined;
    const { query } = request.url;
    const location = `${address}${encodePath(rest)}${query === undefined ? "" : `?${query}`}`;
    const headers = { cache_control: "no-store", referrer_policy: "no-referrer" };
    if (isPersonal(request)) return { status_code: 302, headers: { ...headers, location } };
    const message = `The Admin API is not at the ports of apps: it is at ${address}api`;
    return json({ error: { code: "not_found", message } }, { status_code: 404, headers });
  };
  const handler: Handler = (event, rest = "") => redirect(event, rest);
  const keys = httpMethods.flatMap((method) => [method, `${method} /*`]);
  return Object.fromEntries(keys.map((key) => [key, handler]));
}

/** Whether a person opens the address, rather than a script or a frame of a page. */
function isPersonal(request: HttpRequest): boolean {
  const { method } = request;
  if ((method !== "GET" && method !== "HEAD") || !wantsPage(request)) return false;
  return isNavigation(request) || !isOfBrowser(request);
}
