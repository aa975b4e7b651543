/** Pins at remote services (`pin.remote`), and the list of these. */
import { CID } from "multiformats/cid";
import type { LowLevelNode } from "../low_level_node.ts";
import type { PinFilters, ServiceState } from "../network/pinning_services/remote_pins.ts";
import type { PinStatusWord, RemotePin as ServicePin } from "../network/pinning_services/responses.ts";
import { type CallOptions, callSignal, type IpfsPath, pathText, reading } from "./common.ts";

export interface RemoteServiceOptions extends CallOptions {
  /** Name of the service; the call fails where it is missing or not known. */
  readonly service: string | undefined;
}

/** CIDs and endpoints are given as text, as the service or the configuration has them. */
export interface AsText {
  readonly text: true;
}

export interface PinRemoteAddOptions extends RemoteServiceOptions {
  /** Name of the pin; at most 255 bytes. */
  readonly name?: string | undefined;
  /** Do not wait until it is pinned. */
  readonly background?: boolean | undefined;
}

/** Which pins are meant. */
export interface PinRemoteFilter extends RemoteServiceOptions {
  readonly name?: string | undefined;
  readonly cid?: readonly (CID | string)[] | undefined;
  /** `queued`, `pinning`, `pinned`, `failed`; pinned ones by default. */
  readonly status?: readonly string[] | undefined;
}

export interface RemotePin<C = CID> {
  readonly cid: C;
  readonly name: string;
  /** Empty where the service says nothing. */
  readonly status: PinStatusWord | "";
}

export interface RemoteServiceLsOptions extends CallOptions {
  /** Ask each how many pins it has. */
  readonly stat?: boolean | undefined;
}

export interface RemoteService<E = URL> {
  readonly service: string;
  readonly endpoint: E;
  /** Where it was asked; `invalid`: it did not answer as it should. */
  readonly stat?:
    | { readonly status: "valid"; readonly pinCount: Readonly<Record<PinStatusWord, number>> }
    | { readonly status: "invalid" };
}

export interface PinRemoteServiceApi {
  /** Adds a service; it is not asked. @throws NodeError for a name that is taken, or no HTTP URL */
  add(name: string, options: CallOptions & { readonly endpoint: string | URL; readonly key: string }): Promise<void>;
  /** By name. With `text`, endpoints are as the configuration has them. */
  ls(options: RemoteServiceLsOptions & AsText): Promise<RemoteService<string>[]>;
  ls(options?: RemoteServiceLsOptions): Promise<RemoteService[]>;
  /** One that is not known is no failure. */
  rm(name: string, options?: CallOptions): Promise<void>;
}

export interface PinRemoteApi {
  /** Has a service pin an object; unless in the `background`, resolves when it is pinned. */
  add(cid: IpfsPath, options: PinRemoteAddOptions & AsText): Promise<RemotePin<string>>;
  add(cid: IpfsPath, options: PinRemoteAddOptions): Promise<RemotePin>;
  /** In the order of the service: the newest first. */
  ls(options: PinRemoteFilter & AsText): AsyncIterable<RemotePin<string>>;
  ls(options: PinRemoteFilter): AsyncIterable<RemotePin>;
  /** Removes the pin that matches. @throws NodeError when there are several */
  rm(options: PinRemoteFilter): Promise<void>;
  /** Removes all pins that match. */
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
      const { cid } = await node.resolve(pathText(path), reading(options));
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
