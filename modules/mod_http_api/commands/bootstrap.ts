/** The peers that are dialled first. */
import { type Argument, value } from "../command.ts";
import { fields } from "../shape.ts";
import { type Later, later } from "./later.ts";

const returns = value(fields("BootstrapOutput", { Peers: ["string"] }));

const peers = (help: string): readonly Argument[] => [{ name: "peer", variadic: true, stdin: "lines", help }];

const list: Later = { help: "Lists the peers that are dialled first.", returns };

export const commands = later({
  bootstrap: list,
  "bootstrap/add": {
    help: "Puts peers into the list; it is used from the next start on.",
    arguments: peers("The peers to add, as `<multiaddr>/p2p/<peer ID>`."),
    options: {
      default: {
        type: "bool",
        deprecated: true,
        help: "Add the built-in peers; `bootstrap/add/default` does that now.",
      },
    },
    returns,
  },
  "bootstrap/add/default": { help: "Puts the built-in peers into the list.", returns },
  "bootstrap/list": list,
  "bootstrap/rm": {
    help: "Takes peers out of the list.",
    arguments: peers("The peers to remove, as `<multiaddr>/p2p/<peer ID>`; `/p2p/<peer ID>` for all addresses of one."),
    options: {
      all: { type: "bool", deprecated: true, help: "Remove all peers; `bootstrap/rm/all` does that now." },
    },
    returns,
  },
  "bootstrap/rm/all": { help: "Empties the list.", returns },
});
