/**
 * Checks for settings that contradict each other or would have no effect: with such settings the
 * network does not open.
 */
import { join } from "node:path";
import { readPlainText } from "../storage/plain_file.ts";
import { AUTO } from "../storage/repo/auto_values.ts";
import type { Repo } from "../storage/repo/repo.ts";
import { failure } from "../util/errors.ts";
import { formatDuration, parseDuration } from "../util/go/duration.ts";
import { quote } from "../util/go/text.ts";
import { connectionLimits } from "./swarm/connection_limits.ts";

type Config = Pick<Repo["config"], "value">;

/** File with limits of go-ipfs's resource manager. Only the check below reads it. */
const limitFile = "libp2p-resource-limit-overrides.json";
/** Limits that must leave room for the connections that accumulate between two trims. */
const limitNames = ["Conns", "ConnsInbound", "Streams", "StreamsInbound"] as const;

/** Milliseconds for which a DHT stores a provider record. */
const PROVIDER_RECORD_VALIDITY = 48 * 3_600_000;

/**
 * Resolves to warnings for the operator.
 *
 * @throws NodeError with the error text of Kubo
 */
export async function requireConsistent({ config, path }: Pick<Repo, "config" | "path">): Promise<readonly string[]> {
  requireExchange(config);
  requireBootstrap(config);
  requireRelayTransport(config);
  requireResolvers(config);
  const interval = parseDuration(config.value("Provide.DHT.Interval") || "0");
  if (interval > PROVIDER_RECORD_VALIDITY) {
    throw failure("CONFIG_INVALID", {
      reason:
        `Provide.DHT.Interval (${formatDuration(interval)}) must be less than or equal to DHT provider record validity ` +
        `(${formatDuration(PROVIDER_RECORD_VALIDITY)})`,
    });
  }
  const limits = await readPlainText(join(path, limitFile)).catch(() => undefined);
  if (limits === undefined || config.value("Swarm.ResourceMgr.Enabled") === false) return [];
  requireRoom(config, limits);
  return [`${join(path, limitFile)} has no effect: this node reads its limits from Swarm.ResourceMgr of its config`];
}

function requireExchange(config: Config): void {
  if (config.value("Bitswap.Libp2pEnabled") !== false || config.value("HTTPRetrieval.Enabled") !== false) return;
  throw failure("CONFIG_INVALID", {
    reason:
      "invalid configuration: Bitswap.Libp2pEnabled and HTTPRetrieval.Enabled are both disabled, unable to initialize Bitswap",
  });
}

function requireBootstrap(config: Config): void {
  const listed = config.value("Bootstrap") ?? [];
  if (config.value("AutoConf.Enabled") !== false || listed.length === 0 || !listed.every((each) => each === AUTO))
    return;
  throw failure("CONFIG_INVALID", {
    reason:
      "no usable bootstrap peers: AutoConf is disabled (AutoConf.Enabled=false) but 'auto' placeholder is used in Bootstrap config. Either set AutoConf.Enabled=true to enable automatic configuration, or replace 'auto' with specific Bootstrap peer addresses",
  });
}

function requireRelayTransport(config: Config): void {
  if (config.value("Swarm.Transports.Network.Relay") !== false) return;
  const users = { "Swarm.EnableRelayHop": "Swarm.RelayService", "Swarm.EnableAutoRelay": "Swarm.RelayClient" } as const;
  for (const key of ["Swarm.EnableRelayHop", "Swarm.EnableAutoRelay"] as const) {
    if (!config.value(key)) continue;
    throw failure("CONFIG_INVALID", {
      reason: `Failed to enable \`${users[key]}\`, it requires \`Swarm.Transports.Network.Relay\` to be true.`,
    });
  }
}

function requireResolvers(config: Config): void {
  for (const [domain, url] of Object.entries(config.value("DNS.Resolvers") ?? {})) {
    if (!domain.endsWith(".")) throw failure("CONFIG_INVALID", { reason: `invalid domain ${domain}; must be FQDN` });
    if (url === "" || url === AUTO || (/^https?:\/\//.test(url) && URL.canParse(url))) continue;
    throw failure("CONFIG_INVALID", { reason: `bad resolver for ${domain}: invalid DoH resolver URL: ${url}` });
  }
}

/** @throws NodeError if connections would reach a limit before the connection manager trims them */
function requireRoom(config: Config, text: string): void {
  const { high } = connectionLimits(config) ?? {};
  if (high === undefined || (config.value("Swarm.ResourceMgr.Allowlist") ?? []).length > 0) return;
  for (const name of limitNames) {
    const limit = limitIn(text, name);
    if (limit === undefined || limit > high) continue;
    throw failure("CONFIG_INVALID", {
      reason:
        "Unable to initialize libp2p due to conflicting resource manager limit configuration.\n" +
        `resource manager System.${name} (${limit}) must be bigger than ConnMgr.HighWater (${high})`,
    });
  }
}

/** Returns undefined if there is no limit. @throws NodeError for a file that is not valid JSON */
function limitIn(text: string, name: string): number | undefined {
  try {
    const limit: unknown = (JSON.parse(text) as Record<string, Record<string, unknown> | undefined>).System?.[name];
    return limit === "blockAll" ? 0 : typeof limit === "number" && limit > 0 ? limit : undefined;
  } catch (error) {
    throw failure(
      "CONFIG_INVALID",
      { reason: `${quote(limitFile)} is not valid JSON: ${(error as Error).message}` },
      error,
    );
  }
}
