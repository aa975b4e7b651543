/** `id`: the identity of the node or of another peer. */
import { peerIdEncoder } from "modhost/node";
import { type AnyCall, type Commands, readCommand, value } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { texts, wireNames } from "./shapes.ts";

const output = fields("IdOutput", {
  ID: "string",
  PublicKey: "string",
  /** Null while the node is offline; so are the protocols. */
  Addresses: nullable(["string"]),
  AgentVersion: "string",
  ProtocolVersion: "string",
  Protocols: nullable(["string"]),
});

/** Replaces the placeholders of fields, then `\n` and `\t`. */
function formatted(format: string, id: ValueOf<typeof output>): string {
  const parts: Readonly<Record<string, string>> = {
    "<id>": id.ID,
    "<aver>": id.AgentVersion,
    "<pver>": id.ProtocolVersion,
    "<pubkey>": id.PublicKey,
    "<addrs>": (id.Addresses ?? []).join("\n"),
    "<protocols>": (id.Protocols ?? []).join("\n"),
    "\\n": "\n",
    "\\t": "\t",
  };
  return Object.entries(parts).reduce((text, [mark, part]) => text.replaceAll(mark, () => part), format);
}

const about = {
  help: "Shows the id, public key, addresses and protocols of this node or of another peer.",
  arguments: [{ name: "peerid", help: "Id of another peer." }],
  options: {
    format: {
      type: "string",
      aliases: ["f"],
      help: "Format with <id>, <aver>, <pver>, <pubkey>, <addrs> and <protocols>; used with `encoding=text`.",
    },
    "peerid-base": {
      type: "string",
      default: "b58mh",
      help: "Encoding of the id: `b58mh`, or the multibase of a CID.",
    },
  },
} as const;

type IdCall = Pick<AnyCall, "node" | "signal"> & {
  readonly offline?: boolean;
  readonly arguments: { readonly peerid: string | undefined };
  readonly options: { readonly "peerid-base": string };
};

async function shown({ arguments: { peerid: peerId }, options, node, signal, offline }: IdCall) {
  const encode = peerIdEncoder(options["peerid-base"]);
  const { id, addresses, ...identity } = await node.id({ peerId, signal, offline });
  const { PublicKey, ...others } = wireNames(identity);
  return { ID: encode(id), PublicKey, Addresses: addresses && texts(addresses), ...others };
}

const textOf = (id: object, whole: ValueOf<typeof output>, format: string | undefined) =>
  format === undefined ? `${JSON.stringify(id, undefined, "\t")}\n\n` : formatted(format, whole);

export const commands = {
  id: readCommand({
    ...about,
    returns: value(output),
    // go-ipfs 0.9 ignores `offline` here, so it is not passed on.
    run: ({ arguments: args, options, node, signal }) => shown({ arguments: args, options, node, signal }),
    text: (id, { options: { format } }) => textOf(id, id, format),
  }),
} satisfies Commands;

const { ProtocolVersion: _, ...since } = output.fields;

export const kubo043 = {
  id: readCommand({
    ...about,
    returns: value(fields("IdOutput", since)),
    async run(call) {
      const { ProtocolVersion: _, AgentVersion, ...others } = await shown(call);
      return { ...others, AgentVersion: AgentVersion.replace(/\/$/, "") };
    },
    text: (id, { options: { format } }) => textOf(id, { ...id, ProtocolVersion: "" }, format),
  }),
} satisfies Commands;
