/** What the repo's config says of the gateway at `Addresses.Gateway`, as go-ipfs and its later versions have it. */
import { headerFault, type NodeModule, parseDuration } from "modhost/node";
import { PublicGateways } from "./hosts/public_gateways.ts";
import { answerHeaders, type GatewaySettings, timerTime } from "./settings.ts";

type Config = NodeModule["lowLevel"]["repo"]["config"];

const KEYS = [
  "Gateway.HTTPHeaders",
  "Gateway.RootRedirect",
  "Gateway.NoFetch",
  "Gateway.NoDNSLink",
  "Gateway.PublicGateways",
  "Gateway.DeserializedResponses",
  "Gateway.DisableHTMLErrors",
  "Gateway.RetrievalTimeout",
  "Gateway.MaxRequestDuration",
  "Gateway.MaxConcurrentRequests",
  "Gateway.MaxRangeRequestFileSize",
  "Gateway.ExposeRoutingAPI",
  "Gateway.Writable",
  "Experimental.P2pHttpProxy",
] as const;

const DEFAULT_RETRIEVAL_TIMEOUT = "30s";
const DEFAULT_DURATION = "1h";
const DEFAULT_CONCURRENT = 4096;

export interface ConfigSettings extends GatewaySettings {
  /** Where `/` leads; empty: nowhere. */
  readonly rootRedirect: string;
  /** `/p2p/PEER/http/PATH` leads to the HTTP services of peers. */
  readonly p2pProxy: boolean;
}

export interface FollowedSettings {
  readonly now: ConfigSettings;
  /** Changes of the config are heard no longer. */
  end(): void;
}

/** Follows the config from now on. @throws NodeError for a value that cannot be used */
export function followConfig(config: Config, warn: (sentence: string) => void): FollowedSettings {
  let now = read(config, warn);
  const end = config.follow([...KEYS], () => void (now = read(config, warn)));
  return {
    get now() {
      return now;
    },
    end,
  };
}

function read(config: Config, warn: (sentence: string) => void): ConfigSettings {
  return {
    noFetch: config.value("Gateway.NoFetch"),
    writable: config.value("Gateway.Writable"),
    rootRedirect: config.value("Gateway.RootRedirect"),
    p2pProxy: config.value("Experimental.P2pHttpProxy"),
    publicGateways: new PublicGateways(config.value("Gateway.PublicGateways") ?? {}),
    dnslink: !config.value("Gateway.NoDNSLink"),
    routing: config.value("Gateway.ExposeRoutingAPI") ?? true,
    deserialized: config.value("Gateway.DeserializedResponses") ?? true,
    htmlErrors: config.value("Gateway.DisableHTMLErrors") !== true,
    headers: answerHeaders(sendable(config.value("Gateway.HTTPHeaders") ?? {}, warn)),
    maxRequests: config.value("Gateway.MaxConcurrentRequests") ?? DEFAULT_CONCURRENT,
    stallTime: timerTime(parseDuration(config.value("Gateway.RetrievalTimeout") || DEFAULT_RETRIEVAL_TIMEOUT)),
    totalTime: timerTime(parseDuration(config.value("Gateway.MaxRequestDuration") || DEFAULT_DURATION)),
    maxRangeFile: config.value("Gateway.MaxRangeRequestFileSize") ?? 0,
  };
}

function sendable(
  configured: Readonly<Record<string, readonly string[] | null>>,
  warn: (sentence: string) => void,
): Record<string, readonly string[]> {
  const headers: Record<string, readonly string[]> = {};
  for (const [name, values] of Object.entries(configured)) {
    const fault = headerFault(name, values ?? []);
    if (fault === undefined) headers[name] = values ?? [];
    else warn(`Gateway.HTTPHeaders.${JSON.stringify(name)} is not sent: ${fault}`);
  }
  return headers;
}
