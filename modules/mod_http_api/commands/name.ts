/** `name`: mutable names (IPNS). */
import { peerIdEncoder, printable } from "modhost/node";
import {
  bytes,
  type Commands,
  defineGroup,
  type Option,
  raw,
  readCommand,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { nameBase, orNull, resolvedPath, strings, wireNames } from "./shapes.ts";

const inspection = fields("IpnsInspectResult", {
  Entry: fields("IpnsInspectEntry", {
    Value: "string",
    ValidityType: "int",
    Validity: "time",
    Sequence: "uint64",
    TTL: "uint64",
  }),
  PbSize: "int",
  SignatureType: "string",
  HexDump: "string",
  Validation: nullable(fields("IpnsInspectValidation", { Valid: "bool", Reason: "string", Name: "string" })),
});

/** Formats bytes like Go's `hex.Dump`: sixteen per line. */
function hexDump(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((byte, index) => `${byte.toString(16).padStart(2, "0")}${index === 7 ? "  " : " "}`).join("");
    const letters = row.map((byte) => (byte < 32 || byte > 126 ? "." : String.fromCharCode(byte))).join("");
    rows.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(49)} |${letters}|\n`);
  }
  return rows.join("");
}

async function* paths(found: AsyncIterable<string>): AsyncGenerator<ValueOf<typeof resolvedPath>> {
  for await (const Path of found) yield { Path };
}

const delegated = {
  type: "bool",
  since: "0.43",
  help: "Only use the routers of Ipns.DelegatedPublishers.",
} as const satisfies Option;

const publishing = (lifetime: string, cached: Omit<Option & { readonly type: "string" }, "help">) =>
  writeCommand({
    help: "Publishes a path under a name.",
    about: `A node without connections, such as a new one, fails with \`failed to find any peer in table\`, but on this machine the name
resolves to the new path nevertheless. With \`allow-offline=true\` the call succeeds, as in later versions of go-ipfs, even if the
node was started without a network. With \`offline=true\` in addition, the node does not try to publish the record.`,
    arguments: [{ name: "ipfs-path", path: true, required: true, stdin: "first", help: "The path." }],
    options: {
      resolve: { type: "bool", default: true, help: "Check first that the path can be resolved." },
      lifetime: {
        type: "string",
        aliases: ["t"],
        default: lifetime,
        help: 'How long the record is valid, such as "300s", "1.5h" or "2h45m".',
      },
      "allow-offline": { type: "bool", help: "When offline, save the record locally instead of failing." },
      ttl: { ...cached, help: "How long others may cache the record." },
      key: { type: "string", aliases: ["k"], default: "self", help: "The key, by name or identifier." },
      quieter: { type: "bool", aliases: ["Q"], help: "Print only the name." },
      "ipns-base": nameBase,
      "allow-delegated": delegated,
      sequence: {
        type: "uint64",
        since: "0.43",
        help: "Sequence number of the record, greater than that of the last one.",
      },
      v1compat: {
        type: "bool",
        default: true,
        since: "0.43",
        help: "Also add the signature that programs before 2021 check.",
      },
    },
    returns: value(fields("IpnsEntry", { Name: "string", Value: "string" })),
    async run({ node, arguments: { "ipfs-path": path }, options, level, signal, offline }) {
      const { "allow-offline": allowOffline, "allow-delegated": allowDelegated, ...more } = options;
      const ipnsBase = level.publishing === "0.9" ? options["ipns-base"] : undefined;
      const how = { ...more, allowOffline, allowDelegated, ipnsBase, rules: level.publishing, signal, offline };
      return wireNames(await node.name.publish(path, how));
    },
    text: ({ Name, Value }, { options }) =>
      options.quieter ? `${Name}\n` : `Published to ${Name}: ${printable(Value)}\n`,
  });

export const commands = {
  name: defineGroup({ help: "Publish and resolve names." }),
  "name/publish": publishing("24h", { type: "string", experimental: true }),
  "name/get": readCommand({
    help: "Returns the record of a name.",
    since: "0.43",
    arguments: [{ name: "name", required: true, stdin: "first", help: "The name." }],
    returns: raw,
    run: async ({ node, arguments: { name }, signal, offline }) =>
      bytes(await node.name.get(name, { signal, offline })),
  }),
  "name/put": writeCommand({
    help: "Accepts a record that was signed elsewhere, and publishes it.",
    since: "0.43",
    arguments: [{ name: "name", required: true, help: "The name." }],
    file: { name: "record", required: true, help: "The record." },
    options: {
      force: { type: "bool", aliases: ["f"], help: "Do not check the record." },
      "allow-offline": { type: "bool", help: "When offline, save the record locally instead of failing." },
      "allow-delegated": { type: "bool", help: delegated.help },
      quiet: { type: "bool", aliases: ["q"], help: "Print nothing." },
    },
    returns: value(fields("IpnsEntry", { Name: "string", Value: "string" })),
    async run({ node, arguments: { name }, options, files, signal, offline }) {
      const { force, "allow-offline": allowOffline, "allow-delegated": allowDelegated } = options;
      const { body } = await files.one();
      const how = { force, allowOffline, allowDelegated, signal, offline };
      const put = await node.name.put(name, body, how);
      return { Name: peerIdEncoder("base36")(put.name), Value: put.value };
    },
    text: ({ Name, Value }, { options }) => (options.quiet ? "" : `Published to ${Name}: ${printable(Value)}\n`),
  }),
  "name/inspect": readCommand({
    help: "Shows the contents of a record, and whether it is valid for a name.",
    since: "0.43",
    options: {
      verify: { type: "string", help: "Name to verify the record for." },
      dump: { type: "bool", default: true, help: "Also show the bytes." },
    },
    file: { name: "record", required: true, help: "The record." },
    returns: value(inspection),
    async run({ node, options: { verify, dump }, files }) {
      const found = await node.name.inspect((await files.one()).body, { verify });
      const { entry, size, signatures, validation, bytes } = found;
      const { value: Value, validityType: ValidityType, validity: Validity, sequence, ttl } = entry;
      return {
        Entry: { Value, ValidityType, Validity, Sequence: sequence, TTL: ttl },
        PbSize: size,
        SignatureType: signatures,
        HexDump: dump ? hexDump(bytes) : "",
        Validation:
          validation === undefined
            ? null
            : {
                Valid: validation.fault === undefined,
                Reason: validation.fault ?? "",
                Name: peerIdEncoder("base36")(validation.name),
              },
      };
    },
  }),
  "name/pubsub": defineGroup({ help: "Manage IPNS over pubsub." }),
  "name/pubsub/cancel": writeCommand({
    help: "Ends the subscription to a name.",
    arguments: [{ name: "name", required: true, help: "The name." }],
    returns: value(fields("ipnsPubsubCancel", { Canceled: "bool" })),
    run: async ({ node, arguments: { name } }) => wireNames(await node.name.pubsub.cancel(name)),
    text: ({ Canceled }) => (Canceled ? "canceled\n" : "no subscription\n"),
  }),
  "name/pubsub/state": readCommand({
    help: "Shows whether IPNS over pubsub is enabled.",
    returns: value(fields("ipnsPubsubState", { Enabled: "bool" })),
    run: async ({ node }) => wireNames(await node.name.pubsub.state()),
    text: ({ Enabled }) => (Enabled ? "enabled\n" : "disabled\n"),
  }),
  "name/pubsub/subs": readCommand({
    help: "Lists the subscribed names.",
    options: { "ipns-base": nameBase },
    ...strings,
    async run({ node, options: { "ipns-base": ipnsBase } }) {
      return { Strings: orNull(await node.name.pubsub.subs({ ipnsBase })) };
    },
  }),
  "name/resolve": readCommand({
    help: "Resolves a name.",
    readOnly: true,
    arguments: [{ name: "name", path: true, help: "The name; by default the node's own." }],
    options: {
      recursive: { type: "bool", aliases: ["r"], default: true, help: "Resolve until the result is not a name." },
      nocache: { type: "bool", aliases: ["n"], help: "Do not use cached results." },
      "dht-record-count": {
        type: "uint",
        aliases: ["dhtrc"],
        help: "Number of records to request from the routing system.",
      },
      "dht-timeout": {
        type: "string",
        aliases: ["dhtt"],
        help: 'Timeout for collecting records, such as "30s"; 0 for none.',
      },
      stream: { type: "bool", aliases: ["s"], help: "Return each better record as it is found." },
    },
    returns: value(resolvedPath),
    async run({ node, arguments: { name }, options, signal, offline }) {
      const { "dht-record-count": dhtRecordCount, "dht-timeout": dhtTimeout, stream = false, ...others } = options;
      const found = node.name.resolve(name, { ...others, dhtRecordCount, dhtTimeout, stream, signal, offline });
      if (stream) return paths(found);
      const [Path = ""] = await Array.fromAsync(found);
      return { Path };
    },
    text: ({ Path }) => `${Path}\n`,
  }),
} satisfies Commands;

export const kubo043 = {
  "name/publish": publishing("48h", { type: "string" }),
} satisfies Commands;
