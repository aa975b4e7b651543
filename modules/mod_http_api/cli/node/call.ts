/** Every command that is no matter of the command line: called at the daemon of the repo, or in this process. */
import {
  type CommandContext,
  callRpc,
  findApi,
  findOptions,
  firstWord,
  isAnswering,
  type Options,
  serverOf,
} from "../../../../core/cli/index.ts";
import { NodeError } from "../../node/errors.ts";
import { dataFolder, repoFolder, repoOptions } from "./repo.ts";

/** Options with a value that may stand before a command. */
export const callOptions = {
  api: { type: "string", value: "ADDRESS", help: "The server: a URL or a multiaddress" },
  token: { type: "string", value: "TOKEN", help: "A token of its option api_tokens; @FILE reads it from a file" },
  encoding: { type: "string", value: "FORM", help: "Form of the outcome: text, json or xml" },
  enc: { type: "string", value: "FORM", help: "The same" },
  timeout: { type: "string", value: "TIME", help: "How long it may take, such as 30s" },
  "cid-base": { type: "string", value: "BASE", help: "Base of CIDs of version 1" },
} as const satisfies Options;

/** Gives the exit code. @throws UsageError, Error with the reason of a failure */
export async function call(context: CommandContext, words: readonly string[]): Promise<number> {
  const { options, rest } = apart(words);
  const place = { ...context, options };
  const ordered = commandFirst(rest);
  if (findOptions(ordered, { api: callOptions.api }).length > 0) return callRpc(context, ordered);
  const repo = repoFolder(place);
  const api = await findApi(repo);
  if (api !== undefined && (await isAnswering(serverOf(api.address, api.source)))) {
    return callRpc(context, [`--api=${api.address}`, ...ordered]);
  }
  if (ordered[0] === "shutdown") throw new NodeError("daemon not running");
  const { callWithin } = await import("./within.ts");
  return callWithin(context, ordered, { repo, data: dataFolder(place) });
}

/** Options of this program, and the words of the command. */
function apart(words: readonly string[]) {
  const found = findOptions(words, repoOptions);
  const options: Record<string, string | boolean> = {};
  const taken = new Set<number>();
  for (const { name, value, index, count } of found) {
    options[name] = value ?? true;
    for (let at = index; at < index + count; at++) taken.add(at);
  }
  return { options, rest: words.filter((_, at) => !taken.has(at)) };
}

/** What stands before the command is moved behind it. */
function commandFirst(words: readonly string[]): string[] {
  if (words.length === 1 && words[0] === "--version") return ["version"];
  const at = firstWord(words, callOptions) ?? words.length;
  const behind = words.slice(at);
  const end = behind.indexOf("--");
  return behind.toSpliced(end < 0 ? behind.length : end, 0, ...words.slice(0, at));
}
