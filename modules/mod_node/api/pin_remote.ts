/** Pins at remote pinning services (`pin.remote`), and the list of services. */
import { CID } from "multiformats/cid";
import type { PinFilters, ServiceState } from "../network/pinning_services/remote_pins.ts";
import type { PinStatusWord, RemotePin as ServicePin } from "../network/pinning_services/responses.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { type CallOptions, callSignal, type IpfsPath, pathText, readOptions } from "./common.ts";

export interface RemoteServiceOptions extends CallOptions {
  /** Name of the service; the call fails if it is missing or unknown. */
  readonly service: string | undefined;
}

/** Return CIDs and endpoints as text, exactly as the service or the configuration has them. */
export interface AsText {
  readonly text: true;
}

export interface PinRemoteAddOptions extends RemoteServiceOptions {
  /** Name of the pin; at most 255 bytes. */
  readonly name?: string | undefined;
  /** Do not wait until the object is pinned. */
  readonly background?: boolean | undefined;
}

/** Which pins to select. */
export interface PinRemoteFilter extends RemoteServiceOptions {
  readonly name?: string | undefined;
  readonly cid?: readonly (CID | string)[] | undefined;
  /** Statuses: `queued`, `pinning`, `pinned`, `failed`; only `pinned` by default. */
  readonly status?: readonly string[] | undefined;
}

export interface RemotePin<C = CID> {
  readonly cid: C;
  readonly name: string;
  /** Empty if the service reports none. */
  readonly status: PinStatusWord | "";
}

export interface RemoteServiceLsOptions extends CallOptions {
  /** Query the number of pins at each service. */
  readonly stat?: boolean | undefined;
}

export interface RemoteService<E = URL> {
  readonly service: string;
  readonly endpoint: E;
  /** Present only with the option `stat`; `invalid` if the service did not respond correctly. */
  readonly stat?:
    | { readonly status: "valid"; readonly pinCount: Readonly<Record<PinStatusWord, number>> }
    | { readonly status: "invalid" };
}

export interface PinRemoteServiceApi {
  /**
   * Adds a service without contacting it.
   *
   * @throws NodeError for a name in use, or an endpoint that is not an HTTP URL
   */
  add(name: string, options: CallOptions & { readonly endpoint: string | URL; readonly key: string }): Promise<void>;
  /** Lists the services by name. With `text`, endpoints are as in the configuration. */
  ls(options: RemoteServiceLsOptions & AsText): Promise<RemoteService<string>[]>;
  ls(options?: RemoteServiceLsOptions): Promise<RemoteService[]>;
  /** Removes a service; an unknown one is not an error. */
  rm(name: string, options?: CallOptions): Promise<void>;
}

export interface PinRemoteApi {
  /** Asks a service to pin an object. Resolves when it is pinned, or at once with `background`. */
  add(cid: IpfsPath, options: PinRemoteAddOptions & AsText): Promise<RemotePin<string>>;
  add(cid: IpfsPath, options: PinRemoteAddOptions): Promise<RemotePin>;
  /** Lists pins in the order of the service, the newest first. */
  ls(options: PinRemoteFilter & AsText): AsyncIterable<RemotePin<string>>;
  ls(options: PinRemoteFilter): AsyncIterable<RemotePin>;
  /** Removes the matching pin. @throws NodeError if several match */
  rm(options: PinRemoteFilter): Promise<void>;
  /** Removes all matching pins. */
  rmAll(options: PinRemoteFilter): Promise<void>;
  readonly service: PinRemoteServiceApi;
}

type MaybeText = Partial<Record<keyof AsText, boolean>>;

const filtersOf = ({ name, cid, status: statuses = ["pinned"] }: PinRemoteFilter): PinFilters => ({
  name,
  cids: cid?.map(String),
  statuses,
});

function serviceOf({ name, endpoint, counts }: ServiceState, { text }: MaybeText): RemoteService<URL | string> {
  return {
    service: name,
    endpoint: text === true ? endpoint : new URL(endpoint),
    ...(counts !== undefined && {
      stat: counts === "invalid" ? { status: counts } : { status: "valid", pinCount: counts },
    }),
  };
}

export function pinRemoteApi(node: LowLevelNode): PinRemoteApi {
  const { remotePins } = node;
  const shown = ({ cid, name, status }: ServicePin, { text }: MaybeText): RemotePin<CID | string> => ({
    cid: text === true ? cid : CID.parse(cid),
    name,
    status,
  });
  const remove = async (options: PinRemoteFilter, force: boolean) => {
    const client = remotePins.service(options.service);
    await remotePins.remove(client, filtersOf(options), { force, signal: callSignal(options) });
  };
  const api = {
    async add(path: IpfsPath, { service, name, background, ...options }: PinRemoteAddOptions & MaybeText) {
      const client = remotePins.service(service);
      const { cid } = await node.resolve(pathText(path), readOptions(options));
      return shown(await remotePins.add(client, cid, { name, background, signal: callSignal(options) }), options);
    },
    async *ls(options: PinRemoteFilter & MaybeText) {
      const client = remotePins.service(options.service);
      for await (const pin of remotePins.list(client, filtersOf(options), callSignal(options)))
        yield shown(pin, options);
    },
    rm: (options: PinRemoteFilter) => remove(options, false),
    rmAll: (options: PinRemoteFilter) => remove(options, true),
    service: {
      add: (name: string, { endpoint, key }: { readonly endpoint: string | URL; readonly key: string }) =>
        remotePins.addService(name, { endpoint: String(endpoint), key }),
      async ls({ stat = false, ...options }: RemoteServiceLsOptions & MaybeText = {}) {
        const services = await remotePins.services(stat, callSignal(options));
        return services.map((each) => serviceOf(each, options));
      },
      rm: (name: string) => remotePins.removeService(name),
    },
  };
  return api as PinRemoteApi;
}
