/** Options of the host that count for commands of this program, too: in the config file that is named, and in the environment. */
import type { CommandContext } from "../../../../core/cli/index.ts";
import { loadConfig } from "../../../../core/index.ts";
import type { LevelName } from "../../rpc/levels.ts";

type Place = Pick<CommandContext, "configPath" | "cwd" | "env">;

/** The level of the API, by `api_level`: that of commands without a daemon is that at which the daemon would answer. */
export async function levelOf(place: Place): Promise<LevelName> {
  return (await written(place, "api_level")) === "0.43" ? "0.43" : "0.9";
}

/** What the node calls itself, by `node_agent`. */
export const agentOf = (place: Place): Promise<string | undefined> => written(place, "node_agent");

async function written({ configPath, cwd, env }: Place, name: string): Promise<string | undefined> {
  const config = await loadConfig({ path: configPath, search: false, cwd, env });
  const value = config.written(name);
  return value === undefined ? undefined : String(value);
}
