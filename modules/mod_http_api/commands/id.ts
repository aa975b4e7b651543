/** Who the node is. */
import { type Commands, defineCommand, value } from "../command.ts";
import { NodeError } from "../node/errors.ts";
import { type PeerId, parsePeerId, peerIdEncoder, publicKeyText } from "../node/repo/identity.ts";
import { agentVersion } from "../packages.ts";
import { fields } from "../shape.ts";
import { protocolVersion } from "../version.ts";

const offline = `'ipfs id' currently cannot query information on remote
peers without a running daemon; we are working to fix this.
In the meantime, if you want to query remote peers using 'ipfs id',
please run the daemon:

    ipfs daemon &
    ipfs id QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ
`;

interface Identified {
  readonly ID: string;
  readonly PublicKey: string;
  /** Null while the node is offline, and so is the next. */
  readonly Addresses: readonly string[] | null;
  readonly AgentVersion: string;
  readonly ProtocolVersion: string;
  readonly Protocols: readonly string[] | null;
}

function asked(text: string): PeerId {
  try {
    return parsePeerId(text);
  } catch (error) {
    throw new NodeError("invalid peer id", { cause: error });
  }
}

/** Replaces what stands for the fields, then `\n` and `\t`. */
function formatted(format: string, id: Identified): string {
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
  id: defineCommand({
    help: "Tells the id, key, addresses and protocols of the node or of another peer.",
    arguments: [{ name: "peerid", help: "Id of another peer." }],
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        help: "Text with <id>, <aver>, <pver>, <pubkey>, <addrs> and <protocols> in it.",
      },
      "peerid-base": {
        type: "string",
        default: "b58mh",
        help: "Encoding of the id: `b58mh`, or the multibase of a CID.",
      },
    },
    returns: value(
      fields("IdOutput", {
        ID: "string",
        PublicKey: "string",
        Addresses: ["string"],
        AgentVersion: "string",
        ProtocolVersion: "string",
        Protocols: ["string"],
      }),
    ),
    async run({ arguments: { peerid }, options, node }): Promise<Identified> {
      const encode = peerIdEncoder(options["peerid-base"]);
      const { identity } = node.repo;
      if (peerid !== undefined && !asked(peerid).equals(identity.peerId)) throw new NodeError(offline);
      return {
        ID: encode(identity.peerId),
        PublicKey: publicKeyText(identity),
        Addresses: null,
        AgentVersion: await agentVersion(),
        ProtocolVersion: protocolVersion,
        Protocols: null,
      };
    },
    text: (id, { options: { format } }) =>
      format === undefined ? `${JSON.stringify(id, undefined, "\t")}\n\n` : formatted(format, id),
  }),
} satisfies Commands;
