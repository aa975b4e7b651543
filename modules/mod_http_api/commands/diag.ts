/** `diag`: running commands and facts about the system. */

import { failure, formatDuration, parseDuration, quote } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import { bytes, type Commands, defineGroup, nothing, raw, readCommand, value, writeCommand } from "../rpc/command.ts";
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

/** Go's zero time, for a command that has not ended. */
const never = "0001-01-01T00:00:00Z";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (number: number) => String(number).padStart(2, "0");

/** Formats a time like `Nov 21 08:14:55`. */
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

/** The default collectors, in the order of Kubo. */
const collectors = [
  ...["goroutines-stack", "goroutines-pprof", "version", "heap", "allocs"],
  ...["bin", "cpu", "mutex", "block", "trace"],
];

/**
 * Validates the option although it has no effect here, because a caller who sends it expects it to
 * be understood.
 */
function requireDuration(rate: string): void {
  try {
    parseDuration(rate);
  } catch (error) {
    const { message } = error as Error;
    throw failure(
      "DURATION_INVALID",
      { reason: `failed to parse block profile rate ${quote(rate)}: ${message}` },
      error,
    );
  }
}

/** An inlined block that needs no store. Reading it detects anything else that prevents reads. */
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
      // `columns` puts one space after each cell; this adds a second one.
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
    help: "Checks that the node responds to calls and can read blocks.",
    since: "0.43",
    returns: value("string"),
    async run({ node }) {
      await node.block.get(EMPTY_BLOCK, { offline: true });
      return "ok";
    },
  }),
  "diag/profile": readCommand({
    help: "Collects profiles of the process in a ZIP archive.",
    about:
      "The collectors `version`, `heap` (statistics without contents of the memory), `goroutines-stack` (handles that keep the event loop alive), `cpu` and `allocs` (samples that the tools of Chromium can open) use V8 and Node.js. Node.js has no counterpart of the other collectors: `left_out.json` names those that were requested.",
    since: "0.43",
    example: { "profile-time": "0s" },
    options: {
      output: {
        type: "string",
        aliases: ["o"],
        default: "./ipfs-profile-[timestamp].zip",
        help: "File in which clients store it; has no effect here.",
      },
      collectors: { type: "list", default: collectors, help: "What to collect." },
      "profile-time": {
        type: "string",
        default: "30s",
        help: "How long to take samples: at most 1h, and for one call at a time; 0 takes none.",
      },
      "mutex-profile-fraction": { type: "int", default: 4, help: "For Go's runtime; has no effect here." },
      "block-profile-rate": { type: "string", default: "1ms", help: "For Go's runtime; has no effect here." },
    },
    returns: raw,
    run({ node, options: { collectors, "profile-time": profileTime, "block-profile-rate": rate }, signal }) {
      requireDuration(rate);
      return bytes(node.diag.profile({ collectors, profileTime, signal }));
    },
  }),
  "diag/sys": readCommand({
    help: "Shows information about the system.",
    returns: value("any"),
    run: async ({ node, level }) => ({ ...(await node.diag.sys()), ipfs_version: level.version }),
  }),
} satisfies Commands;
