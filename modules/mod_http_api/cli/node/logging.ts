/** Log levels, format and destination of the daemon, from the environment variables of go-ipfs. */
import { resolve } from "node:path";
import type { NodeLog } from "modhost/node";
import type { CommandContext } from "../../../../core/cli/index.ts";
import type { LogSettings } from "../../../../core/index.ts";
import { textOf } from "./repo.ts";

/** Parses `error,dht=debug`: a level for all subsystems, then levels for single ones. */
function levelsOf({ env, options }: CommandContext): readonly (readonly [subsystem: string, level: string])[] {
  const asked = textOf(env.GOLOG_LOG_LEVEL) ?? textOf(env.IPFS_LOGGING) ?? "";
  const parts = options.debug === true ? ["debug"] : asked.split(",").filter((part) => part !== "");
  return parts.map((part) => {
    const [first = "", second] = part.split("=");
    return second === undefined ? (["*", first] as const) : ([first, second] as const);
  });
}

/** Log settings of the host. If any level is set, the host filters nothing: the node's own log does. */
export function logSettings(context: CommandContext): LogSettings {
  const { env, cwd, stderr } = context;
  const file = textOf(env.GOLOG_FILE);
  const form = textOf(env.GOLOG_LOG_FMT) ?? textOf(env.IPFS_LOGGING_FMT);
  return {
    level: levelsOf(context).length > 0 ? "debug" : "warn",
    ...(form === undefined ? {} : { format: form === "json" ? "json" : "pretty" }),
    destination: file === undefined ? stderr : resolve(cwd, file),
  };
}

/** Sets the levels on the node's log. Unknown levels and subsystems are reported on stderr and otherwise ignored. */
export function setLevels(log: NodeLog, context: CommandContext): void {
  for (const [subsystem, level] of levelsOf(context)) {
    try {
      log.setLevel(subsystem, level);
    } catch (error) {
      context.stderr.write(`modhost: ${subsystem}=${level}: ${(error as Error).message}\n`);
    }
  }
}
