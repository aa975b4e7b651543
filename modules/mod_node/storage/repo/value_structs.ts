/** Kinds of values that are objects with fixed keys. */
import type { JsonObject } from "./json.ts";
import { anything, bool, duration, flag, int, list, map, struct, text } from "./value_kinds.ts";

export const texts = list(text);
export const headers = map(texts);
export const gateway = struct<JsonObject | null>(
  "GatewaySpec",
  {
    Paths: { kind: texts },
    UseSubdomains: { kind: bool },
    NoDNSLink: { kind: bool },
    InlineDNSLink: { kind: flag, optional: true },
    DeserializedResponses: { kind: flag, optional: true },
  },
  { nullable: true },
);
export const plugin = struct<JsonObject>("Plugin", { Disabled: { kind: bool }, Config: { kind: anything } });
export const throttle = struct<JsonObject | null>(
  "AutoNATThrottleConfig",
  { GlobalLimit: { kind: int }, PeerLimit: { kind: int }, Interval: { kind: duration, optional: true } },
  { nullable: true },
);

/** Access to the RPC API: a secret, and prefixes of the paths that it permits. */
type AuthScope = { readonly AuthSecret: string; readonly AllowedPaths: readonly string[] | null };

export const authScope = struct<AuthScope | null>(
  "RPCAuthScope",
  { AuthSecret: { kind: text }, AllowedPaths: { kind: texts } },
  { nullable: true },
);

/** A remote pinning service. */
export interface RemoteService {
  readonly API: { readonly Endpoint: string; readonly Key: string };
  readonly Policies: {
    readonly MFS: { readonly Enable: boolean; readonly PinName: string; readonly RepinInterval: string };
  };
}

const mfsPolicy = struct("RemotePinningServiceMFSPolicy", {
  Enable: { kind: bool },
  PinName: { kind: text },
  RepinInterval: { kind: text },
});
export const remoteService = struct<RemoteService & JsonObject>("RemotePinningService", {
  API: { kind: struct("RemotePinningServiceAPI", { Endpoint: { kind: text }, Key: { kind: text } }) },
  Policies: { kind: struct("RemotePinningServicePolicies", { MFS: { kind: mfsPolicy } }) },
});

/** A router of `Routing.Routers`. Its type determines which parameters apply. */
export interface RouterConfig {
  readonly Type: string;
  readonly Parameters: {
    readonly Endpoint?: string;
    readonly Mode?: string;
    /** Whether to use the public DHT instead of the local one. */
    readonly PublicIPNetwork?: boolean;
    readonly Routers?: readonly RouterMember[] | null;
    /** A duration. */
    readonly Timeout?: string;
  };
}

interface RouterMember {
  readonly RouterName: string;
  readonly Timeout?: string;
  readonly IgnoreErrors: boolean;
  readonly ExecuteAfter?: string;
}

const routerMember = struct<RouterMember & JsonObject>("ConfigRouter", {
  RouterName: { kind: text },
  Timeout: { kind: duration, optional: true },
  IgnoreErrors: { kind: bool },
  ExecuteAfter: { kind: duration, optional: true },
});
const routerParameters = struct<RouterConfig["Parameters"] & JsonObject>("RouterParams", {
  Endpoint: { kind: text, optional: true },
  MaxProvideBatchSize: { kind: int, optional: true },
  MaxProvideConcurrency: { kind: int, optional: true },
  Mode: { kind: text, optional: true },
  AcceleratedDHTClient: { kind: bool, optional: true },
  PublicIPNetwork: { kind: bool, optional: true },
  Routers: { kind: list(routerMember), optional: true },
  Timeout: { kind: duration, optional: true },
});
export const router = struct<RouterConfig & JsonObject>("RouterParser", {
  Type: { kind: text },
  Parameters: { kind: routerParameters },
});
export const routerChoice = struct<{ readonly RouterName: string }>("Method", { RouterName: { kind: text } });
