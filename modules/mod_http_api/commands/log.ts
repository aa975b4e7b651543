/** `log`: the log of the node. */
import { goJson, type LogEvent } from "modhost/node";
import {
  type AnyCall,
  bytes,
  type Commands,
  defineGroup,
  raw,
  readCommand,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, map } from "../rpc/shape.ts";
import { lines, strings } from "./shapes.ts";

/**
 * Yields a line of JSON for each log message and for each start and end of a command, until the
 * signal is aborted.
 *
 * @throws NodeError for an unknown level /
 */
function tail(
  { node, log, signal }: Pick<AnyCall, "node" | "log" | "signal">,
  level: string | undefined,
): AsyncIterable<Uint8Array> {
  const also = (emit: (event: LogEvent & Readonly<Record<"command" | "id", unknown>>) => void) =>
    log.listen(({ id, command, start, end }) => {
      const [event, time] = end === undefined ? ["commandBegin", start] : ["commandEnd", end];
      emit({ event, system: "commands", time: time.toISOString(), command, id });
    });
  return written(node.log.tail({ signal, also, level }));
}

async function* written(events: AsyncIterable<LogEvent>): AsyncGenerator<Uint8Array> {
  for await (const event of events) yield Buffer.from(`${goJson(event)}\n`);
}

export const commands = {
  log: defineGroup({ help: "Work with the node's log." }),
  "log/level": writeCommand({
    help: "Sets the lowest level that is logged.",
    arguments: [
      { name: "subsystem", required: true, help: "Subsystem, as listed by `log/ls`; `all` for all of them." },
      { name: "level", required: true, help: "debug, info, warn, error, dpanic, panic or fatal." },
    ],
    returns: value(fields("MessageOutput", { Message: "string" })),
    async run({ node, arguments: { subsystem, level } }) {
      return { Message: (await node.log.level(subsystem, level)).message };
    },
    text: ({ Message }) => Message,
  }),
  "log/ls": readCommand({
    help: "Lists the logging subsystems.",
    ...strings,
    run: async ({ node }) => ({ Strings: await node.log.ls() }),
  }),
  "log/tail": readCommand({
    help: "Prints new log entries, one JSON object per line.",
    options: {
      "log-level": {
        type: "string",
        unset: [""],
        since: "0.43",
        help: "The lowest level of the entries; commands are info.",
      },
    },
    endless: true,
    returns: raw,
    run: (call) => bytes(tail(call, call.options["log-level"])),
  }),
} satisfies Commands;

export const kubo043 = {
  "log/level": writeCommand({
    help: "Sets or shows the lowest level that is logged.",
    arguments: [
      { name: "subsystem", help: "Subsystem, as listed by `log/ls`; `all` or `*` for all of them." },
      {
        name: "level",
        help: "debug, info, warn, error, dpanic, panic or fatal; `default` for the level of the other subsystems.",
      },
    ],
    returns: value(fields("LevelOutput", { "Message?": "string", "Levels?": map("string") })),
    async run({ node, arguments: { subsystem, level } }) {
      if (!level) return { Levels: await node.log.levels(subsystem) };
      return { Message: (await node.log.level(subsystem ?? "*", level, { lenient: true })).message };
    },
    text({ Message, Levels = {} }) {
      const levels = Object.entries(Levels);
      return Message ?? lines(levels.map(([name, level]) => (levels.length === 1 ? level : `${name}: ${level}`)));
    },
  }),
} satisfies Commands;
