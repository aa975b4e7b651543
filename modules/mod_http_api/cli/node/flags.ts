/** Reads the flags of `modhost node daemon`. */

import { type ConfigOverrides, failure } from "modhost/node";
import type { CommandContext } from "../../../../core/cli/index.ts";
import { textOf } from "./repo.ts";

const routings: readonly string[] = [
  "dht",
  "dhtclient",
  "dhtserver",
  "none",
  "auto",
  "autoclient",
  "delegated",
  "custom",
];
const idle: readonly string[] = ["unrestricted-api", "enable-mplex-experiment"];

/** @throws NodeError for unsupported, contradictory or unknown values */
export function readFlags({ options, stderr }: CommandContext) {
  const refused = (flag: string, why: string) => {
    if (options[flag] === true) throw failure("NOT_SUPPORTED", { reason: `${why}: start without --${flag}` });
  };
  refused("disable-transport-encryption", "connections between peers are always encrypted");
  if (options.mount === true && options.offline === true) {
    throw failure("NOT_SUPPORTED", { reason: "mount is not currently supported in offline mode" });
  }
  for (const flag of idle) if (options[flag] === true) stderr.write(`modhost: --${flag} has no effect\n`);
  const routing = textOf(options.routing) ?? "default";
  if (routing !== "default" && !routings.includes(routing)) {
    throw failure("OPTION_INVALID", { reason: `unrecognized routing option: ${routing}` });
  }
  const overrides: ConfigOverrides = {
    ...(routing === "default" ? {} : { "Routing.Type": routing }),
    ...(typeof options.writable === "boolean" ? { "Gateway.Writable": options.writable } : {}),
  };
  const none = options["rebuild-pins-none"] === true;
  if (none && options["restore-pins"] === true)
    throw failure("OPTION_CONFLICT", { reason: "give either --restore-pins or --rebuild-pins-none" });
  const lostMetadata = none ? "none" : options["restore-pins"] === true ? "restore" : "refuse";
  // Undefined if the flag is not given: then the config decides.
  const flag = (name: string) => (typeof options[name] === "boolean" ? options[name] : undefined);
  const namesOverPubsub = flag("enable-namesys-pubsub");
  const pubsub = namesOverPubsub === true ? true : flag("enable-pubsub-experiment");
  return {
    newRepo:
      options.init === true
        ? { document: textOf(options["init-config"]), profile: textOf(options["init-profile"]) }
        : undefined,
    offline: options.offline === true,
    lostMetadata: lostMetadata as "none" | "restore" | "refuse",
    overrides,
    pubsub,
    namesOverPubsub,
    // If this is not set, the environment decides.
    ...(options.debug === true ? { debug: true } : {}),
    mount:
      options.mount === true ? { ipfs: textOf(options["mount-ipfs"]), ipns: textOf(options["mount-ipns"]) } : undefined,
    settings: { node_gc: options["enable-gc"] === true },
  };
}
