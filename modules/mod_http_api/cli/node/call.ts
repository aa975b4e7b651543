/** Calls an RPC command: on the repo's daemon if one is reachable, otherwise in this process. */
import { type CommandContext, findOptions, takeOptions } from "../../../../core/cli/index.ts";
import { callRpc } from "../rpc/call.ts";
import { moveCommandFirst, takeOwnOptions } from "../rpc/parse.ts";
import { isReachable, parseServer, readApiFiles } from "../rpc/server.ts";
import { levelOf } from "./level.ts";
import { dataFolder, program, repoFolder, repoOptions } from "./repo.ts";

/** Resolves to the exit code. @throws UsageError, or Error with the reason of the failure */
export async function call(context: CommandContext, words: readonly string[]): Promise<number> {
  const { values, rest } = takeOptions(words, repoOptions);
  const contextWithOptions = { ...context, options: values };
  const ordered = moveCommandFirst(rest);
  const { help, rest: commandWords } = takeOwnOptions(ordered);
  if (help) {
    const { tableHelp } = await import("./help.ts");
    context.stdout.write(tableHelp(commandWords, await levelOf(context)));
    return 0;
  }
  if (findOptions(ordered, { api: { type: "string", help: "" } }).length > 0)
    return callRpc(context, ordered, { program });
  const repo = repoFolder(contextWithOptions);
  const api = await readApiFiles(repo);
  if (api !== undefined && (await isReachable(parseServer(api.address, api.source)))) {
    const own = api.token === undefined ? [] : [`--token=${api.token}`];
    return callRpc(context, [`--api=${api.address}`, ...own, ...ordered], { program });
  }
  if (ordered[0] === "shutdown") throw new Error("daemon not running");
  const { callWithoutDaemon: callUnserved } = await import("./without_daemon.ts");
  return callUnserved(context, ordered, { repo, data: dataFolder(contextWithOptions) });
}
