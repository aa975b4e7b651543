/** The peers that are dialled first. */
import type { BootstrapResult } from "modhost/node";
import { type Argument, type Commands, defineCommand, value } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { texts } from "./shapes.ts";

const output = fields("BootstrapOutput", { Peers: ["string"] });
const returns = value(output);

const shown = ({ Peers }: BootstrapResult) => ({ Peers: texts(Peers) });

const lines = (word: string) => (listed: ValueOf<typeof output>) =>
  listed.Peers.toSorted()
    .map((peer) => `${word}${peer}\n`)
    .join("");

const peers = (help: string) =>
  [{ name: "peer", variadic: true, stdin: "lines", help }] as const satisfies readonly Argument[];

const list = defineCommand({
  help: "Lists the peers that are dialled first.",
  returns,
  run: async ({ node }) => shown(await node.bootstrap.list()),
  text: lines(""),
});

export const commands = {
  bootstrap: list,
  "bootstrap/add": defineCommand({
    help: "Puts peers into the list; it is used from the next start on.",
    example: { arg: "<peer>" },
    arguments: peers("The peers to add, as `<multiaddr>/p2p/<peer ID>`; needed without `default`."),
    options: {
      default: {
        type: "bool",
        deprecated: true,
        help: "Add the built-in peers; `bootstrap/add/default` does that now.",
      },
    },
    returns,
    async run({ node, arguments: { peer }, options }) {
      return { Peers: (await node.bootstrap.add(peer, { ...options, texts: true })).texts ?? [] };
    },
    text: lines("added "),
  }),
  "bootstrap/add/default": defineCommand({
    help: "Puts the built-in peers into the list.",
    returns,
    run: async ({ node }) => shown(await node.bootstrap.reset()),
    text: lines("added "),
  }),
  "bootstrap/list": list,
  "bootstrap/rm": defineCommand({
    help: "Takes peers out of the list.",
    arguments: peers("The peers to remove, as `<multiaddr>/p2p/<peer ID>`; `/p2p/<peer ID>` for all addresses of one."),
    options: {
      all: { type: "bool", deprecated: true, help: "Remove all peers; `bootstrap/rm/all` does that now." },
    },
    returns,
    run: async ({ node, arguments: { peer }, options }) => shown(await node.bootstrap.rm(peer, options)),
    text: lines("removed "),
  }),
  "bootstrap/rm/all": defineCommand({
    help: "Empties the list.",
    returns,
    run: async ({ node }) => shown(await node.bootstrap.clear()),
    text: lines("removed "),
  }),
} satisfies Commands;
