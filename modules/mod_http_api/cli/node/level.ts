/**
 * Options of the host that also apply to commands of this program. They come from the named config
 * file and the environment.
 */
import type { CommandContext } from "../../../../core/cli/index.ts";
import { loadConfig } from "../../../../core/index.ts";
import type { LevelName } from "../../rpc/levels.ts";

type ConfigContext = Pick<CommandContext, "configPath" | "cwd" | "env">;

/**
 * Returns the API level that `api_level` configures. A command without a daemon runs at the level
 * at which the daemon would serve it.
 */
export async function levelOf(context: ConfigContext): Promise<LevelName> {
  return (await written(context, "api_level")) === "0.43" ? "0.43" : "0.9";
}

/** Returns the name that `node_agent` gives the node. */
export const agentOf = (context: ConfigContext): Promise<string | undefined> => written(context, "node_agent");

async function written({ configPath, cwd, env }: ConfigContext, name: string): Promise<string | undefined> {
  const config = await loadConfig({ path: configPath, search: false, cwd, env });
  const value = config.written(name);
  return value === undefined ? undefined : String(value);
}
