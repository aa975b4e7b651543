/** The node's identity. */
import { peerIdEncoder } from "modhost/node";
import { type Commands, readCommand, value } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { texts, wireNames } from "./shapes.ts";

const output = fields("IdOutput", {
  ID: "string",
  PublicKey: "string",
  /** Null while the node is offline, as are the protocols. */
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

export const commands = {
  id: readCommand({
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
    returns: value(output),
    async run({ arguments: { peerid: peerId }, options, node, signal }) {
      const encode = peerIdEncoder(options["peerid-base"]);
      const { id, addresses, ...told } = await node.id({ peerId, signal });
      const { PublicKey, ...others } = wireNames(told);
      return { ID: encode(id), PublicKey, Addresses: addresses && texts(addresses), ...others };
    },
    text: (id, { options: { format } }) =>
      format === undefined ? `${JSON.stringify(id, undefined, "\t")}\n\n` : formatted(format, id),
  }),
} satisfies Commands;
