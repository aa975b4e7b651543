/**
 * The settings of the gateway at `Addresses.Gateway` in the repo's config, as in go-ipfs and later
 * Kubo versions.
 */
import { headerFault, type NodeModule, parseDuration } from "modhost/node";
import { PublicGateways } from "./hosts/public_gateways.ts";
import { type GatewaySettings, responseHeaders, timerTime } from "./settings.ts";

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
  /** Target of a redirect from `/`; empty for none. */
  readonly rootRedirect: string;
  /** Whether `/p2p/PEER/http/PATH` leads to the HTTP services of peers. */
  readonly p2pProxy: boolean;
}

export interface FollowedSettings {
  readonly now: ConfigSettings;
  /** Stops following changes of the config. */
  end(): void;
}

/**
 * Follows the config. If a changed time is invalid, the previous one stays in force; at the start,
 * the default does.
 */
export function followConfig(config: Config, warn: (sentence: string) => void): FollowedSettings {
  const startTime: TimeOf = (key, standard) => {
    try {
      return timeIn(config)(key, standard);
    } catch (error) {
      warn(`${key} is not in force, the default ${standard} is: ${(error as Error).message}`);
      return timerTime(parseDuration(standard));
    }
  };
  let now = read(config, startTime, warn);
  const end = config.follow([...KEYS], () => void (now = read(config, timeIn(config), warn)));
  return {
    get now() {
      return now;
    },
    end,
  };
}

/** Returns a configured time in milliseconds; `standard` is the default for a missing value. */
type TimeOf = (key: "Gateway.RetrievalTimeout" | "Gateway.MaxRequestDuration", standard: string) => number;

/** @throws NodeError for a text that is not a duration */
const timeIn =
  (config: Config): TimeOf =>
  (key, standard) =>
    timerTime(parseDuration(config.value(key) || standard));

function read(config: Config, timeOf: TimeOf, warn: (sentence: string) => void): ConfigSettings {
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
    headers: responseHeaders(sendable(config.value("Gateway.HTTPHeaders") ?? {}, warn)),
    maxRequests: config.value("Gateway.MaxConcurrentRequests") ?? DEFAULT_CONCURRENT,
    stallTime: timeOf("Gateway.RetrievalTimeout", DEFAULT_RETRIEVAL_TIMEOUT),
    totalTime: timeOf("Gateway.MaxRequestDuration", DEFAULT_DURATION),
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
