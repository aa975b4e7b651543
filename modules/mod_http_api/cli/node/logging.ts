/**
 * Configures the daemon's log levels, format and destination from the environment variables of
 * go-ipfs.
 */
import { resolve } from "node:path";
import type { NodeLog, NodeLogLevel } from "modhost/node";
import type { CommandContext } from "../../../../core/cli/index.ts";
import type { LogSettings } from "../../../../core/index.ts";
import { textOf } from "./repo.ts";

/** Parses `error,dht=debug`: a level for all subsystems, then levels for single ones. */
function levelsOf({ env, options }: CommandContext): readonly (readonly [subsystem: string, level: string])[] {
  const requested = textOf(env.GOLOG_LOG_LEVEL) ?? textOf(env.IPFS_LOGGING) ?? "";
  const parts = options.debug === true ? ["debug"] : requested.split(",").filter((part) => part !== "");
  return parts.map((part) => {
    const [first = "", second] = part.split("=");
    return second === undefined ? (["*", first] as const) : ([first, second] as const);
  });
}

/**
 * Returns the log settings of the host. Its level follows the level of the node's log, which
 * `log/level` changes while the daemon runs; warnings are always written. The node's own log has
 * already filtered the lines of its subsystems.
 */
export function logSettings(context: CommandContext, log: NodeLog): LogSettings {
  const { env, cwd, stderr } = context;
  const file = textOf(env.GOLOG_FILE);
  const form = textOf(env.GOLOG_LOG_FMT) ?? textOf(env.IPFS_LOGGING_FMT);
  return {
    level: (module) => hostLevel(module === "node" ? log.lowestLevel : log.defaultLevel),
    ...(form === undefined ? {} : { format: form === "json" ? "json" : "pretty" }),
    destination: file === undefined ? stderr : resolve(cwd, file),
  };
}

/** Warnings of the host are written at every level, because nothing else reports them. */
const hostLevel = (level: NodeLogLevel) => (level === "debug" || level === "info" ? level : "warn");

/**
 * Sets the levels of the node's log. Unknown levels and subsystems are reported on stderr and
 * otherwise ignored.
 */
export function setLevels(log: NodeLog, context: CommandContext): void {
  for (const [subsystem, level] of levelsOf(context)) {
    try {
      log.setLevel(subsystem, level);
    } catch (error) {
      context.stderr.write(`modhost: ${subsystem}=${level}: ${(error as Error).message}\n`);
    }
  }
}
