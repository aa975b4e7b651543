/** Names that change what they stand for. */
import { defineGroup, type Option, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { nameBase, resolvedPath, stringList } from "./shapes.ts";

const recursive = (help: string): Option => ({ type: "bool", aliases: ["r"], default: true, help });

export const commands = later({
  dns: {
    help: "Follows the link in the DNS records of a domain.",
    readOnly: true,
    arguments: [{ name: "domain-name", required: true, stdin: "first", help: "The domain." }],
    options: { recursive: recursive("Go on until the result is no domain.") },
    returns: value(resolvedPath),
  },
  name: defineGroup({ help: "Publish and resolve names." }),
  "name/publish": {
    help: "Makes a name stand for a path.",
    arguments: [{ name: "ipfs-path", required: true, stdin: "first", help: "The path." }],
    options: {
      resolve: { type: "bool", default: true, help: "Look first whether there is something at that path." },
      lifetime: {
        type: "string",
        aliases: ["t"],
        default: "24h",
        help: 'Time for which the record is valid, such as "300s", "1.5h" or "2h45m".',
      },
      "allow-offline": { type: "bool", help: "Without network, keep the record here instead of failing." },
      ttl: { type: "string", experimental: true, help: "Time for which others may keep the record." },
      key: { type: "string", aliases: ["k"], default: "self", help: "The key, by name or identifier." },
      quieter: { type: "bool", aliases: ["Q"], help: "Print the name alone." },
      "ipns-base": nameBase,
    },
    returns: value(fields("IpnsEntry", { Name: "string", Value: "string" })),
  },
  "name/pubsub": defineGroup({ help: "Look after the names that are followed over publish and subscribe." }),
  "name/pubsub/cancel": {
    help: "Follows a name no longer.",
    arguments: [{ name: "name", required: true, help: "The name." }],
    returns: value(fields("ipnsPubsubCancel", { Canceled: "bool" })),
  },
  "name/pubsub/state": {
    help: "Tells whether names are published over publish and subscribe.",
    returns: value(fields("ipnsPubsubState", { Enabled: "bool" })),
  },
  "name/pubsub/subs": {
    help: "Lists the names that are followed.",
    options: { "ipns-base": nameBase },
    returns: value(stringList),
  },
  "name/resolve": {
    help: "Tells what a name stands for.",
    readOnly: true,
    arguments: [{ name: "name", help: "The name; by default the node's own." }],
    options: {
      recursive: recursive("Go on until the result is no name."),
      nocache: { type: "bool", aliases: ["n"], help: "Do not use what was resolved before." },
      "dht-record-count": {
        type: "uint",
        aliases: ["dhtrc"],
        help: "Number of records to ask the routing system for.",
      },
      "dht-timeout": {
        type: "string",
        aliases: ["dhtt"],
        help: 'Longest time to gather records, such as "30s"; 0 for no limit.',
      },
      stream: { type: "bool", aliases: ["s"], help: "Give each better record as it is found." },
    },
    returns: value(resolvedPath),
  },
});
