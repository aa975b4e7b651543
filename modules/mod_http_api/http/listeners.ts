/**
 * Additional listeners: further API addresses, and the gateway addresses with the read-only
 * commands.
 */

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
import { apiRoutes, uploadOptions } from "./mount.ts";
import { plainError } from "./respond.ts";

/** Response for `/ipfs` and `/ipns` on listeners that serve only commands. */
const noContent =
  "Content paths are not served here: use /api/v0/cat, /api/v0/get or /api/v0/ls, or load a gateway module.";

type Section = "Addresses.API" | "Addresses.Gateway";

/** Settings for serving the API, or the read-only commands, at some addresses. */
export interface ApiEndpoints {
  readonly name: string;
  readonly settings: ApiSettings;
  /** Kind of the items by which other modules add pages next to the commands. */
  readonly pages?: "rpc-page" | "gateway-page";
}

interface ApiService extends ApiEndpoints {
  readonly section: Section;
  /** Whether the endpoints are Unix sockets. */
  readonly isLocal: boolean;
}

/**
 * An item of the kind "rpc-page" or "gateway-page": a page that another module serves at the
 * addresses of the API or of the gateway, at the same path as go-ipfs.
 */
export interface RpcPage {
  readonly path: `/${string}`;
  readonly route: RouteTable;
  /** Claims requests before the commands see them, as in an HttpProvider. */
  readonly claims?: HttpProvider["claims"];
  /**
   * Whether proxy clients are served, and whether requests are forwarded, as in an HttpProvider.
   */
  readonly tunnels?: boolean;
  readonly relays?: boolean;
}

/**
 * Multiaddrs of the open listeners with the ports actually bound, in the order of the
 * configuration.
 */
export interface Listening {
  readonly api: readonly string[];
  readonly gateway: readonly string[];
}

/**
 * Opens the listeners for `Addresses.Gateway` and for the entries of `Addresses.API` that the host
 * does not already serve: the first entry stands for the host's own ports, if it has any. An
 * address that cannot be opened causes a warning, or an error if `required` is set. The listeners
 * follow changes of the configuration; `changed` is called after each. If a new address cannot be
 * opened, the previous listeners stay.
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
    const change = async (service: ApiService, endpoints: readonly NetEndpoint[]) => {
      if (!open.has(service) && endpoints.length > 0) openService(service, []);
      await open.get(service)?.(endpoints);
    };
    const renew = async () => {
      addresses.requireUsable(section);
      const previous = own.map((service) => [service, addresses.openEndpoints(service)] as const);
      const wanted = own.map((service) => [service, addresses.endpoints(service)] as const);
      try {
        // A service that closes all its addresses is changed last, because it may be the only one
        // through which a mistake can be corrected.
        for (const [service, endpoints] of wanted.toSorted((a, b) => Number(b[1].length > 0) - Number(a[1].length > 0)))
          await change(service, endpoints);
        addresses.use(section);
      } catch (error) {
        for (const [service, endpoints] of previous) await change(service, endpoints).catch(() => undefined);
        throw error;
      } finally {
        await changed?.();
      }
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

/** The configured addresses, and which of them are open. */
class ConfiguredAddresses {
  readonly #module: Module;
  readonly #config: Repo["config"];
  readonly #required: boolean;
  readonly #own: readonly { readonly address: string; readonly port: number }[];
  /** The addresses of each section when they were last opened. */
  readonly #opened = new Map<Section, readonly string[]>();
  /** Addresses with the ports actually bound, by section and address. */
  readonly #bound = new Map<string, string>();

  constructor(module: Module, config: Repo["config"], required: boolean) {
    this.#module = module;
    this.#config = config;
    this.#required = required;
    this.#own = ownEndpoints(module);
    this.use("Addresses.API");
    this.use("Addresses.Gateway");
  }

  /** Takes over the addresses of the current configuration. */
  use(section: Section): void {
    const listed = this.#listed(section);
    this.#opened.set(section, listed);
    for (const address of listed) {
      if (endpointOf(address) === undefined)
        this.#module.log.warn("%s: %s is neither a TCP port nor a Unix socket", section, address);
    }
  }

  listening(section: Section): readonly string[] {
    return (this.#opened.get(section) ?? []).flatMap((address) => this.#bound.get(`${section} ${address}`) ?? []);
  }

  /**
   * Validates new addresses while the current ones stay open.
   *
   * @throws Error for an address that cannot be opened, and if the API would have no address left,
   * since no call could then correct the mistake /
   */
  requireUsable(section: Section): void {
    const listed = this.#listed(section);
    const wrong = listed.find((address) => endpointOf(address) === undefined);
    if (wrong !== undefined) {
      throw new Error(
        `${JSON.stringify(wrong)} is neither a TCP port nor a Unix socket: the previous addresses stay open`,
      );
    }
    if (section === "Addresses.API" && this.#own.length === 0 && listed.length === 0) {
      throw new Error(
        "without an address nobody could reach the API: the previous addresses stay open until the next start",
      );
    }
  }

  /** Returns the endpoints of the open addresses. */
  openEndpoints(service: ApiService): readonly NetEndpoint[] {
    const { section } = service;
    const opened = this.#opened.get(section) ?? [];
    return this.endpoints(
      service,
      opened.filter((address) => this.#bound.has(`${section} ${address}`)),
    );
  }

  endpoints({ section, isLocal }: ApiService, listed = this.#listed(section)): readonly NetEndpoint[] {
    return listed
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

/**
 * Returns settings with some fields replaced. All other fields stay linked to the given settings.
 */
export const withFields = (settings: ApiSettings, fields: Partial<ApiSettings>): ApiSettings =>
  Object.assign(Object.create(settings), fields);

/**
 * Serves the API at endpoints. `endpoints_change` receives a function that changes the endpoints
 * later.
 */
export function openAt(
  module: Module,
  { name, settings, pages: kind }: ApiEndpoints,
  endpoints: readonly NetEndpoint[],
  endpoints_change: (change: ChangeEndpoints) => void = () => {},
): void {
  const grace = module.get_option_period("unload_grace") ?? 10;
  const { settings: limits, koa, watchMiddleware, include } = module.depends<HttpModule>("http");
  // These listeners have no virtual hosts: the access checks inspect the host name.
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
      provider: { route, ...uploadOptions(settings) },
      cors: undefined,
    });
  service.mount(mount("/api", apiRoutes(new Api(settings), settings.table)));
  service.mount(mount("", elsewhere));
  const pages = new Map<OwnedItem, AppMount>();
  // Middleware that an operator has put in front of the API applies at every address.
  const unwatch = watchMiddleware((layers) => service.putBefore(layers));
  module.on_release(`middleware of ${name}`, unwatch);
  module.on_release(`requests of ${name}`, include(service));
  if (kind !== undefined) {
    const added = (item: OwnedItem) => {
      const { path, route, claims, tunnels = false, relays = false } = item.item as RpcPage;
      const base = path === "/" ? "" : path;
      const appMount = {
        name: appName(item.owner.name),
        owner: item.owner,
        host: "*",
        base,
        provider: { route, streaming_uploads: true, tunnels, relays, ...(claims && { claims }) },
        cors: undefined,
      };
      const page = new AppMount(appMount);
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
  // Closing begins when the server stops, so that it ends with the time for requests in flight.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= service.close(grace));
  module.hook("server-stopping", () => void close());
  module.on_release(`connections of ${name}`, close, "listener");
}

/** Response for `/webui` without a front end. go-ipfs redirects to its web interface there. */
const noPage = "This node has no web interface: set the option api_webui. Programs use /api/v0.";

/** Routes for all other paths. */
const elsewhere: RouteTable = {};
const nothing: Handler = (_event, rest = "") => {
  if (/^ip[fn]s(\/|$)/.test(rest)) return plainError(404, noContent);
  return plainError(404, /^webui(\/|$)/.test(rest) ? noPage : "404 page not found");
};
for (const method of httpMethods) elsewhere[`${method} /*`] = nothing;
