/** Additional listeners: further API addresses, and the gateway addresses with the read-only commands. */

import type { Repo } from "modhost/node";
import {
  AppMount,
  appName,
  environmentOf,
  type HttpModule,
  HttpService,
  httpMethods,
} from "../../../core/http/index.ts";
import type { Handler, HttpProvider, Module, NetEndpoint, OwnedItem, RouteTable } from "../../../core/types.ts";
import { addressList, endpointOf, ownEndpoints, withPort } from "./addresses.ts";
import { Api, type ApiSettings } from "./api.ts";
import { apiRoutes, uploads } from "./mount.ts";
import { plain } from "./respond.ts";

/** Response for `/ipfs` and `/ipns` on listeners that serve only commands. */
const noContent =
  "Content paths are not served here: ask for them with /api/v0/cat, /api/v0/get or /api/v0/ls, or load a gateway module.";

type Section = "Addresses.API" | "Addresses.Gateway";

/** The API, or the read-only commands, at some addresses. */
export interface Served {
  readonly name: string;
  readonly settings: ApiSettings;
  /** Kind of the items that other modules show here, beside the commands. */
  readonly pages?: "rpc-page" | "gateway-page";
}

interface ApiService extends Served {
  readonly section: Section;
  /** Of Unix sockets. */
  readonly isLocal: boolean;
}

/**
 * An item of the kind "rpc-page" or "gateway-page": what another module shows at the addresses of the API, or of the gateway, at
 * the same path as go-ipfs.
 */
export interface RpcPage {
  readonly path: `/${string}`;
  readonly route: RouteTable;
  /** As in an HttpProvider: what it takes before the commands are asked. */
  readonly claims?: HttpProvider["claims"];
  /** Likewise: whether proxy clients are served, and whether it hands requests on. */
  readonly tunnels?: boolean;
  readonly relays?: boolean;
}

/** Multiaddrs of the open listeners with the ports actually bound, in the order of the configuration. */
export interface Listening {
  readonly api: readonly string[];
  readonly gateway: readonly string[];
}

/**
 * Opens the listeners for `Addresses.Gateway` and for the entries of `Addresses.API` that the host does not already
 * serve: the first entry stands for the host's own ports, if it has any. An address that cannot be opened causes a
 * warning, or an error if `required` is set. When the configuration changes, so do the listeners; `changed` is called
 * then. One that cannot be opened later leaves all as it was.
 */
export function openListeners(
  module: Module,
  { config }: Repo,
  settings: ApiSettings,
  { required = false, changed }: { readonly required?: boolean; readonly changed?: () => unknown } = {},
): Listening {
  const readOnly = withFields(settings, {
    handler: "gateway",
    table: settings.table.readOnly(),
    methods: ["POST", "HEAD", "GET"],
  });
  const [api, gateway] = ["Addresses.API", "Addresses.Gateway"] as const;
  const services: ApiService[] = [
    { name: "http_api_further", section: api, settings, isLocal: false, pages: "rpc-page" },
    { name: "http_api_gateway", section: gateway, settings: readOnly, isLocal: false, pages: "gateway-page" },
    { name: "http_api_socket", section: api, settings: local(settings), isLocal: true },
    {
      name: "http_api_gateway_socket",
      section: gateway,
      settings: local(readOnly),
      isLocal: true,
      pages: "gateway-page",
    },
  ];
  const addresses = new ConfiguredAddresses(module, config, required);
  const open = new Map<ApiService, ChangeEndpoints>();
  const openService = (service: ApiService, endpoints: readonly NetEndpoint[]) =>
    openAt(module, service, endpoints, (change) => void open.set(service, change));
  for (const section of [api, gateway]) {
    const own = services.filter((service) => service.section === section);
    for (const service of own) {
      const endpoints = addresses.endpoints(service);
      if (endpoints.length > 0) openService(service, endpoints);
    }
    const renew = async () => {
      for (const service of own) {
        const endpoints = addresses.endpoints(service);
        if (!open.has(service) && endpoints.length > 0) openService(service, []);
        await open.get(service)?.(endpoints);
      }
      addresses.take(section);
      await changed?.();
    };
    module.on_release(`listeners of ${section}`, config.follow([section], renew));
  }
  return {
    get api() {
      return addresses.listening(api);
    },
    get gateway() {
      return addresses.listening(gateway);
    },
  };
}

/** The addresses of the configuration, and which of them are listened on. */
class ConfiguredAddresses {
  readonly #module: Module;
  readonly #config: Repo["config"];
  readonly #required: boolean;
  readonly #own: readonly { readonly address: string; readonly port: number }[];
  /** As they were when they were last opened. */
  readonly #asked = new Map<Section, readonly string[]>();
  /** With the ports actually bound, by section and address. */
  readonly #bound = new Map<string, string>();

  constructor(module: Module, config: Repo["config"], required: boolean) {
    this.#module = module;
    this.#config = config;
    this.#required = required;
    this.#own = ownEndpoints(module);
    this.take("Addresses.API");
    this.take("Addresses.Gateway");
  }

  /** The listeners are those of the configuration as it is now. */
  take(section: Section): void {
    const listed = this.#listed(section);
    this.#asked.set(section, listed);
    for (const address of listed) {
      if (endpointOf(address) === undefined)
        this.#module.log.warn("%s: %s is neither a TCP port nor a Unix socket", section, address);
    }
  }

  listening(section: Section): readonly string[] {
    return (this.#asked.get(section) ?? []).flatMap((address) => this.#bound.get(`${section} ${address}`) ?? []);
  }

  endpoints({ section, isLocal }: ApiService): readonly NetEndpoint[] {
    return this.#listed(section)
      .flatMap((address) => this.#endpoint(section, address))
      .filter((endpoint) => "path" in endpoint === isLocal && !(section === "Addresses.API" && this.#isOwn(endpoint)));
  }

  #listed(section: Section): readonly string[] {
    const all = addressList(this.#config.value(section));
    return section === "Addresses.API" && this.#own.length > 0 ? all.slice(1) : all;
  }

  #endpoint(section: Section, address: string): NetEndpoint | readonly [] {
    const endpoint = endpointOf(address);
    if (endpoint === undefined) return [];
    const listening = (port: number | undefined) => {
      this.#bound.set(`${section} ${address}`, port === undefined ? address : withPort(address, port));
    };
    return { ...endpoint, required: this.#required, listening };
  }

  #isOwn(endpoint: NetEndpoint): boolean {
    if (!("port" in endpoint) || endpoint.port === 0) return false;
    return this.#own.some(({ address, port }) => port === endpoint.port && address === endpoint.address);
  }
}

type ChangeEndpoints = (endpoints: readonly NetEndpoint[]) => Promise<void>;

export const local = (settings: ApiSettings): ApiSettings => withFields(settings, { isLocal: true });

/** The same settings, which go on changing with those that were given, except for some fields. */
export const withFields = (settings: ApiSettings, fields: Partial<ApiSettings>): ApiSettings =>
  Object.assign(Object.create(settings), fields);

/** `endpoints_change` is given the means to change the endpoints later. */
export function openAt(
  module: Module,
  { name, settings, pages: kind }: Served,
  endpoints: readonly NetEndpoint[],
  endpoints_change: (change: ChangeEndpoints) => void = () => {},
): void {
  const grace = module.get_option_period("unload_grace") ?? 10;
  const { settings: limits, koa, watchMiddleware, beside } = module.depends<HttpModule>("http");
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
      provider: { route, ...uploads(settings) },
      cors: undefined,
    });
  service.mount(mount("/api", apiRoutes(new Api(settings), settings.table)));
  service.mount(mount("", elsewhere));
  const pages = new Map<OwnedItem, AppMount>();
  // What an operator has put before the API stands before it at every address.
  const unwatch = watchMiddleware((layers) => service.putBefore(layers));
  module.on_release(`middleware of ${name}`, unwatch);
  module.on_release(`requests of ${name}`, beside(service));
  if (kind !== undefined) {
    const added = (item: OwnedItem) => {
      const { path, route, claims, tunnels = false, relays = false } = item.item as RpcPage;
      const base = path === "/" ? "" : path;
      const place = {
        name: appName(item.owner.name),
        owner: item.owner,
        host: "*",
        base,
        provider: { route, streaming_uploads: true, tunnels, relays, ...(claims && { claims }) },
        cors: undefined,
      };
      const page = new AppMount(place);
      pages.set(item, page);
      service.mount(page);
    };
    const removed = (item: OwnedItem) => {
      const page = pages.get(item);
      if (page === undefined) return undefined;
      pages.delete(item);
      service.unmount(page);
      return page.retire(grace);
    };
    module.handle_items(kind, added, removed);
  }
  module.provides("net", {
    name,
    default_ports: [],
    endpoints,
    endpoints_change,
    half_open: true,
    onconnect: (socket) => service.listeners.connect(socket),
  });
  // Begun with the stop, it is over when the time for requests in flight is.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= service.close(grace));
  module.hook("server-stopping", () => void close());
  module.on_release(`connections of ${name}`, close, "listener");
}

/** Response for `/webui`, where the reference redirects to its web interface, unless there is one. */
const noPage =
  "No web interface comes with this node: the option api_webui names one, and programs may speak to /api/v0.";

/** Routes for all other paths. */
const elsewhere: RouteTable = {};
const nothing: Handler = (_event, rest = "") => {
  if (/^ip[fn]s(\/|$)/.test(rest)) return plain(404, noContent);
  return plain(404, /^webui(\/|$)/.test(rest) ? noPage : "404 page not found");
};
for (const method of httpMethods) elsewhere[`${method} /*`] = nothing;
