/** `dns`: resolves DNSLink records. */
import { type Commands, readCommand, value } from "../rpc/command.ts";
import { resolvedPath } from "./shapes.ts";

export const commands = {
  dns: readCommand({
    help: "Resolves the DNSLink record of a domain.",
    readOnly: true,
    arguments: [{ name: "domain-name", required: true, stdin: "first", help: "The domain." }],
    options: {
      recursive: {
        type: "bool",
        aliases: ["r"],
        default: true,
        help: "Resolve until the result is not a domain name.",
      },
    },
    returns: value(resolvedPath),
    async run({ node, arguments: { "domain-name": domain }, options, signal }) {
      return { Path: await node.dns(domain, { ...options, signal }) };
    },
    text: ({ Path }) => `${Path}\n`,
  }),
} satisfies Commands;
