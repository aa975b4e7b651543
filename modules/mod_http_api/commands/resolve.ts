/** `resolve`: resolves a path to an immutable one. */
import { type Commands, readCommand, value } from "../rpc/command.ts";
import { resolvedPath } from "./shapes.ts";

export const commands = {
  resolve: readCommand({
    help: "Resolves a name or path.",
    readOnly: true,
    arguments: [{ name: "name", path: true, required: true, stdin: "first", help: "The path." }],
    options: {
      recursive: { type: "bool", aliases: ["r"], default: true, help: "Resolve until the result is not a name." },
      "dht-record-count": {
        type: "int",
        aliases: ["dhtrc"],
        help: "Number of records to request from the routing system.",
      },
      "dht-timeout": {
        unset: ["", "-1"],
        type: "string",
        aliases: ["dhtt"],
        help: 'Timeout for queries of the routing system, such as "30s"; 0 for none.',
      },
    },
    returns: value(resolvedPath),
    async run({ node, arguments: { name }, options, signal, offline, cidForm }) {
      const { recursive, "dht-record-count": dhtRecordCount, "dht-timeout": dhtTimeout } = options;
      const how = { recursive, dhtRecordCount, dhtTimeout, ...cidForm, signal, offline };
      return { Path: await node.resolve(name, how) };
    },
    text: ({ Path }) => `${Path}\n`,
  }),
} satisfies Commands;
