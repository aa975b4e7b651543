/** Calls an RPC command: at the repo's daemon if one answers, otherwise in this process. */
import {
  type CommandContext,
  callRpc,
  commandFirst,
  findApi,
  findOptions,
  isAnswering,
  serverOf,
  takeOptions,
  takeOwn,
} from "../../../../core/cli/index.ts";
import { levelOf } from "./level.ts";
import { dataFolder, program, repoFolder, repoOptions } from "./repo.ts";

/** Resolves to the exit code. @throws UsageError, or Error with the reason of the failure */
export async function call(context: CommandContext, words: readonly string[]): Promise<number> {
  const { values, rest } = takeOptions(words, repoOptions);
  const place = { ...context, options: values };
  const ordered = commandFirst(rest);
  const { help, rest: asked } = takeOwn(ordered);
  if (help) {
    const { tableHelp } = await import("./help.ts");
    context.stdout.write(tableHelp(asked, await levelOf(context)));
    return 0;
  }
  if (findOptions(ordered, { api: { type: "string", help: "" } }).length > 0)
    return callRpc(context, ordered, { program });
  const repo = repoFolder(place);
  const api = await findApi(repo);
  if (api !== undefined && (await isAnswering(serverOf(api.address, api.source)))) {
    const own = api.token === undefined ? [] : [`--token=${api.token}`];
    return callRpc(context, [`--api=${api.address}`, ...own, ...ordered], { program });
  }
  if (ordered[0] === "shutdown") throw new Error("daemon not running");
  const { callUnserved } = await import("./unserved.ts");
  return callUnserved(context, ordered, { repo, data: dataFolder(place) });
}
