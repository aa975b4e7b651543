/** The peers that are dialled first. */

import {
  addBootstrap,
  addDefaultBootstrap,
  clearBootstrap,
  listBootstrap,
  removeBootstrap,
} from "../../mod_node/network/swarm/bootstrap_list.ts";
import { type Argument, type Commands, defineCommand, value } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

const output = fields("BootstrapOutput", { Peers: ["string"] });
const returns = value(output);

const lines = (word: string) => (listed: ValueOf<typeof output>) =>
  listed.Peers.toSorted()
    .map((peer) => `${word}${peer}\n`)
    .join("");

const peers = (help: string) =>
  [{ name: "peer", variadic: true, stdin: "lines", help }] as const satisfies readonly Argument[];

const list = defineCommand({
  help: "Lists the peers that are dialled first.",
  returns,
  run: ({ lowLevel: node }) => ({ Peers: listBootstrap(node.repo.config) }),
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
    async run({ lowLevel: node, arguments: { peer }, options: { default: builtIn } }) {
      const { config } = node.repo;
      return { Peers: await (builtIn === true ? addDefaultBootstrap(config) : addBootstrap(config, peer)) };
    },
    text: lines("added "),
  }),
  "bootstrap/add/default": defineCommand({
    help: "Puts the built-in peers into the list.",
    returns,
    run: async ({ lowLevel: node }) => ({ Peers: await addDefaultBootstrap(node.repo.config) }),
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
    async run({ lowLevel: node, arguments: { peer }, options: { all } }) {
      const { config } = node.repo;
      return { Peers: await (all === true ? clearBootstrap(config) : removeBootstrap(config, peer)) };
    },
    text: lines("removed "),
  }),
  "bootstrap/rm/all": defineCommand({
    help: "Empties the list.",
    returns,
    run: async ({ lowLevel: node }) => ({ Peers: await clearBootstrap(node.repo.config) }),
    text: lines("removed "),
  }),
} satisfies Commands;
