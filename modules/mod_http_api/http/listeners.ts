/** Additional listeners: further API addresses, and the gateway addresses with the read-only commands. */

import type { Repo } from "modhost/node";
import {
  AppMount,
  environmentOf,
  type HttpModule,
  HttpService,
  httpMethods,
  type MiddlewareLayer,
} from "../../../core/http/index.ts";
import type { Handler, Module, NetEndpoint, OwnedItem, RouteTable } from "../../../core/types.ts";
import { addressList, endpointOf, ownEndpoints, withPort } from "./addresses.ts";
import { Api, type ApiSettings } from "./api.ts";
import { apiRoutes } from "./mount.ts";
import { plain } from "./respond.ts";

/** Response for `/ipfs` and `/ipns` on listeners that serve only commands. */
const noContent =
  "Content paths are not served here: ask for them with /api/v0/cat, /api/v0/get or /api/v0/ls, or load a gateway module.";

interface Door {
  readonly name: string;
  readonly endpoints: readonly NetEndpoint[];
  readonly settings: ApiSettings;
  /** Pages of other modules stand beside the API here. */
  readonly hasPages?: boolean;
}

/** An item of the kind "rpc-page": what another module shows at the addresses of the API, at the same path as go-ipfs. */
export interface RpcPage {
  readonly path: `/${string}`;
  readonly route: RouteTable;
}

/** Multiaddrs of the open listeners with the ports actually bound, in the order of the configuration. */
export interface Listening {
  readonly api: readonly string[];
  readonly gateway: readonly string[];
}

/**
 * Opens the listeners for `Addresses.Gateway` and for the entries of `Addresses.API` that the host does not already
 * serve: the first entry stands for the host's own ports, if it has any. An address that cannot be opened causes a
 * warning, or an error if `required` is set.
 */
export function openListeners(module: Module, { config }: Repo, settings: ApiSettings, required = false): Listening {
  const own = ownEndpoints(module);
  const isOwn = (endpoint: NetEndpoint) =>
    "port" in endpoint &&
    endpoint.port !== 0 &&
    own.some(({ address, port }) => port === endpoint.port && address === endpoint.address);
  const endpoints = (key: "Addresses.API" | "Addresses.Gateway", open: (string | undefined)[]) => {
    return (address: string, at: number): NetEndpoint | readonly [] => {
      const endpoint = endpointOf(address);
      if (endpoint === undefined) module.log.warn("%s: %s is neither a TCP port nor a Unix socket", key, address);
      const listening = (port: number | undefined) => {
        open[at] = port === undefined ? address : withPort(address, port);
      };
      return endpoint === undefined ? [] : { ...endpoint, required, listening };
    };
  };
  const opened: Record<keyof Listening, (string | undefined)[]> = { api: [], gateway: [] };
  const further = addressList(config.value("Addresses.API"))
    .slice(own.length > 0 ? 1 : 0)
    .flatMap(endpoints("Addresses.API", opened.api));
  const gateway = addressList(config.value("Addresses.Gateway")).flatMap(
    endpoints("Addresses.Gateway", opened.gateway),
  );
  const readOnly = withFields(settings, {
    handler: "gateway",
    table: settings.table.readOnly(),
    methods: ["POST", "HEAD", "GET"],
  });
  const doors: Door[] = [
    {
      name: "http_api_further",
      endpoints: further.filter((each) => "port" in each && !isOwn(each)),
      settings,
      hasPages: true,
    },
    { name: "http_api_gateway", endpoints: gateway.filter((each) => "port" in each), settings: readOnly },
    { name: "http_api_socket", endpoints: further.filter((each) => "path" in each), settings: local(settings) },
    { name: "http_api_gateway_socket", endpoints: gateway.filter((each) => "path" in each), settings: local(readOnly) },
  ];
  for (const door of doors) if (door.endpoints.length > 0) open(module, door);
  const known = (addresses: readonly (string | undefined)[]) => addresses.filter((each) => each !== undefined);
  return {
    get api() {
      return known(opened.api);
    },
    get gateway() {
      return known(opened.gateway);
    },
  };
}

const local = (settings: ApiSettings): ApiSettings => withFields(settings, { isLocal: true });

/** The same settings, which go on changing with those that were given, except for some fields. */
const withFields = (settings: ApiSettings, fields: Partial<ApiSettings>): ApiSettings =>
  Object.assign(Object.create(settings), fields);

function open(module: Module, { name, endpoints, settings, hasPages = false }: Door): void {
  const grace = module.get_option_period("unload_grace") ?? 10;
  const { settings: limits, koa, watchMiddleware } = module.depends<HttpModule>("http");
  // These listeners have no virtual hosts: the access checks look at the host name.
  const service = new HttpService(
    { ...limits, hosts: [], defaultHost: undefined },
    environmentOf(module),
    undefined,
    koa,
  );
  const mount = (base: string, route: RouteTable) =>
    new AppMount({
      name: "api",
      owner: module,
      host: "*",
      base,
      provider: { route, streaming_uploads: true },
      cors: undefined,
    });
  const mounts = [mount("/api", apiRoutes(new Api(settings), settings.table)), mount("", elsewhere)];
  const pages = new Map<OwnedItem, AppMount>();
  let middleware: readonly MiddlewareLayer[] = [];
  const remount = () => service.mount([...mounts, ...pages.values()], middleware);
  // What an operator has put before the API stands before it at every address.
  const unwatch = watchMiddleware((layers) => {
    middleware = layers;
    remount();
  });
  module.on_release(`middleware of ${name}`, unwatch);
  if (hasPages) {
    const added = (item: OwnedItem) => {
      const { path: base, route } = item.item as RpcPage;
      const place = { name: item.owner.name, owner: item.owner, host: "*", base, provider: { route }, cors: undefined };
      pages.set(item, new AppMount(place));
      remount();
    };
    const removed = (item: OwnedItem) => {
      const page = pages.get(item);
      pages.delete(item);
      remount();
      return page?.retire(grace);
    };
    module.handle_items("rpc-page", added, removed);
  }
  module.provides("net", {
    name,
    default_ports: [],
    endpoints,
    half_open: true,
    onconnect: (socket) => service.listeners.connect(socket),
  });
  // Begun with the stop, it is over when the time for requests in flight is.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= service.close(grace));
  module.hook("server-stopping", () => void close());
  module.on_release(`connections of ${name}`, close, "listener");
}

/** Response for `/webui`, where the reference redirects to its web interface. */
const noPage = "No web interface comes with this node: a program that has one may speak to /api/v0.";

/** Routes for all other paths. */
const elsewhere: RouteTable = {};
const nothing: Handler = (_event, rest = "") => {
  if (/^ip[fn]s(\/|$)/.test(rest)) return plain(404, noContent);
  return plain(404, /^webui(\/|$)/.test(rest) ? noPage : "404 page not found");
};
for (const method of httpMethods) elsewhere[`${method} /*`] = nothing;
