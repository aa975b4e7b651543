/** Running commands and facts about the system. */

import { formatDuration, parseDuration } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import { type Commands, defineGroup, nothing, readCommand, value, writeCommand } from "../rpc/command.ts";
import { fields, map, type ValueOf } from "../rpc/shape.ts";

const entry = fields("ReqLogEntry", {
  StartTime: "time",
  EndTime: "time",
  Active: "bool",
  Command: "string",
  Options: map("any"),
  Args: ["string"],
  ID: "int",
});

/** Go's zero time. */
const never = "0001-01-01T00:00:00Z";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (number: number) => String(number).padStart(2, "0");

/** Formats like `Nov 21 08:14:55`. */
function stamp(time: Date): string {
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":");
  return `${months[time.getMonth()]} ${String(time.getDate()).padStart(2)} ${clock}`;
}

function cells(shown: ValueOf<typeof entry>, verbose: boolean, now: number): string[] {
  const { ID, Command, Args, Options, Active, StartTime, EndTime } = shown;
  const start = new Date(StartTime);
  const lived = (Active ? now : Date.parse(EndTime)) - start.getTime();
  const options = Object.keys(Options).sort();
  const detail = [`[${Args.join(" ")}]`, `[${options.map((name) => `${name}=${Options[name]},`).join("")}]`];
  const facts = [String(Active), stamp(start), formatDuration(lived)];
  return verbose ? [String(ID), Command, ...detail, ...facts] : [Command, ...facts];
}

/** Reads a block that needs no store, so that whatever stands in the way of reading is found. */
const EMPTY_BLOCK = "bafkqaaa";

export const commands = {
  diag: defineGroup({ help: "Show running commands and the system." }),
  "diag/cmds": readCommand({
    help: "Lists running commands and those that ran recently.",
    options: { verbose: { type: "bool", aliases: ["v"], help: "Also print ids, arguments and options." } },
    returns: value([entry]),
    run: ({ log }) =>
      log.list().map(({ id, command, args, options, start, end }) => ({
        StartTime: start.toISOString(),
        EndTime: end?.toISOString() ?? never,
        Active: end === undefined,
        Command: command,
        Options: Object.fromEntries(Object.entries(options).sort(([one], [other]) => (one < other ? -1 : 1))),
        Args: args,
        ID: id,
      })),
    text(entries, { options: { verbose = false } }) {
      const facts = ["Active", "StartTime", "RunTime"];
      const head = verbose ? ["ID", "Command", "Arguments", "Options", ...facts] : ["Command", ...facts];
      const now = Date.now();
      const lines = [head, ...entries.map((each) => cells(each, verbose, now))];
      // Two spaces between columns.
      return columns(
        lines.map((line) => line.map((cell, at) => (at < line.length - 1 ? `${cell} ` : cell))),
        4,
      );
    },
  }),
  "diag/cmds/clear": writeCommand({
    help: "Removes finished commands from the list.",
    returns: nothing,
    run({ log }) {
      log.clear();
    },
  }),
  "diag/cmds/set-time": writeCommand({
    help: "Sets how long finished commands stay in the list.",
    arguments: [{ name: "time", required: true, help: "A duration, such as 30s or 2h45m." }],
    returns: nothing,
    run({ arguments: { time }, log }) {
      log.keep(parseDuration(time));
    },
  }),
  "diag/healthy": readCommand({
    help: "Says that the node answers calls, and reads blocks.",
    since: "0.43",
    returns: value("string"),
    async run({ node }) {
      await node.block.get(EMPTY_BLOCK, { offline: true });
      return "ok";
    },
  }),
  "diag/sys": readCommand({
    help: "Shows information about the system.",
    returns: value("any"),
    run: ({ node }) => node.diag.sys(),
  }),
} satisfies Commands;
