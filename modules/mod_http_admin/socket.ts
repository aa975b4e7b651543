/** The Unix socket of the Admin API: a service of its own, without the virtual hosts and middleware of the server. */
import { join } from "node:path";
import { AppMount, environmentOf, type HttpModule, HttpService } from "../../core/http/index.ts";
import { makePrivateFolder } from "../../core/index.ts";
import type { Module, RouteTable } from "../../core/types.ts";

export function openSocket(module: Module, route: RouteTable): void {
  const { settings, koa } = module.depends<HttpModule>("http");
  const own = module.get_option_path("admin_socket");
  const path = own ?? join(module.data_path(), "admin.sock");
  // A first start has no data folder yet. One that cannot be made is told of where the socket cannot be.
  if (own === undefined && module.serves()) makeDataFolder(module.data_path());
  const service = new HttpService(
    { ...settings, hosts: [], defaultHost: undefined, trustedProxies: [] },
    environmentOf(module),
    undefined,
    koa,
  );
  const failed = (reason: string) => {
    const remedy = "set the option admin_socket to a short path in a folder of this user's own";
    module.set_status("warn", `Commands cannot reach the server: no socket at ${path} (${reason}); ${remedy}`);
  };
  const provider = { route, streaming_uploads: true };
  const mount = new AppMount({ name: "admin", owner: module, host: "*", base: "/admin", provider, cors: undefined });
  service.mount(mount);
  module.provides("net", {
    name: "http_admin_socket",
    default_ports: [],
    endpoints: [{ path, mode: 0o600, failed }],
    half_open: true,
    onconnect: (socket) => service.listeners.connect(socket),
  });
  const grace = module.get_option_period("unload_grace") ?? 10;
  // Begun with the stop, it is over when the time for requests in flight is.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= service.close(grace));
  module.hook("server-stopping", () => void close());
  module.on_release("connections of the admin socket", close, "listener");
}

function makeDataFolder(path: string): void {
  try {
    makePrivateFolder(path);
  } catch {}
}
