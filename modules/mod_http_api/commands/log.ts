/** The node's log. */

import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import { goJson } from "../../mod_node/util/go/text.ts";
import { subsystems } from "../../mod_node/util/log.ts";
import { bytes, type Commands, defineCommand, defineGroup, raw, value } from "../rpc/command.ts";
import type { CommandLog } from "../rpc/command_log.ts";
import { fields } from "../rpc/shape.ts";
import { strings } from "./shapes.ts";

/** A reader that is so far behind misses lines. */
const mostWaiting = 10_000;

/** A line of JSON for each message and for each command that starts or ends, until the signal. */
async function* tail(node: Node, log: CommandLog, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  let waiting: string[] = [];
  let wake = () => {};
  const tell = (line: object) => {
    if (waiting.length < mostWaiting) waiting.push(`${goJson(line)}\n`);
    wake();
  };
  const deaf = [
    node.log.listen(({ time, level, system, message }) => tell({ event: message, level, system, time })),
    log.listen(({ id, command, start, end }) => {
      const [event, time] = end === undefined ? ["commandBegin", start] : ["commandEnd", end];
      tell({ event, system: "commands", time, command, id });
    }),
  ];
  const ended = () => wake();
  signal.addEventListener("abort", ended);
  try {
    for (;;) {
      signal.throwIfAborted();
      const lines = waiting.join("");
      waiting = [];
      if (lines !== "") yield Buffer.from(lines);
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal.removeEventListener("abort", ended);
    for (const end of deaf) end();
  }
}

export const commands = {
  log: defineGroup({ help: "Look at the node's log." }),
  "log/level": defineCommand({
    help: "Sets from which level on messages are logged.",
    arguments: [
      { name: "subsystem", required: true, help: "Part of the node, as `log/ls` lists them; `all` for all." },
      { name: "level", required: true, help: "debug, info, warn, error, dpanic, panic or fatal." },
    ],
    returns: value(fields("MessageOutput", { Message: "string" })),
    run({ arguments: { subsystem, level }, lowLevel: node }) {
      const named = subsystem === "all" ? "*" : subsystem;
      node.log.setLevel(named, level);
      return { Message: `Changed log level of '${named}' to '${level}'\n` };
    },
    text: ({ Message }) => Message,
  }),
  "log/ls": defineCommand({
    help: "Lists the parts of the node that log.",
    ...strings,
    run: () => ({ Strings: [...subsystems] }),
  }),
  "log/tail": defineCommand({
    help: "Prints the log as it grows, a line of JSON for each event.",
    returns: raw,
    run: ({ lowLevel: node, log, signal }) => bytes(tail(node, log, signal)),
  }),
} satisfies Commands;
