import { isAbsolute, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { type Command, type CommandContext, showChange, UsageError } from "../../../core/cli/index.ts";
import type { Change, ModuleRun } from "../../../core/types.ts";
import type { Agreed, Offer } from "../packages.ts";
import { grantFrom, grantOption } from "./common/grants.ts";
import { offerText } from "./common/offer_text.ts";
import { call, showDone, socketOption, type Workplace, workplaceOf } from "./common/work.ts";

const runs: readonly string[] = ["sandboxed", "isolated", "trusted"] satisfies ModuleRun[];

export const command: Command = {
  name: "add",
  help: "Install a module of others, or another version of it",
  arguments: "[SOURCE]",
  options: {
    grant: {
      type: "string",
      value: "PERMISSIONS",
      help: "What the module may do: none, declared, or exactly these, such as connect:api.example.org:443,env:KEY",
    },
    run: { type: "string", value: "HOW", help: "sandboxed (default), isolated or trusted" },
    "dry-run": { type: "boolean", help: "Fetch, check and describe the module, and install nothing" },
    "allow-lower": { type: "boolean", help: "Accept a version that is lower than the installed one" },
    locked: { type: "boolean", help: "Fetch what modules.lock names and what is missing here" },
    ...socketOption,
  },
  about: [
    "SOURCE is an npm package with a range (modhost-mod-shop@^1; shop for short), a tarball, or a folder.",
    "The module is described first, and nothing of it runs before you agree. On a terminal the command asks;",
    "otherwise --grant says what the module may do, and everything else is refused.",
  ].join("\n"),
  async run(context) {
    const { args, options } = context;
    const [source, extra] = args;
    if (extra !== undefined) throw new UsageError(`add takes one source, not ${extra}`);
    const workplace = await workplaceOf(context);
    if (options.locked === true) {
      if (source !== undefined) throw new UsageError("Give either a source or --locked");
      return fetchLocked(context, workplace);
    }
    if (source === undefined) throw new UsageError("add needs SOURCE: an npm package, a tarball or a folder");
    const run = runOf(options.run);
    const offer = await offerOf(workplace, located(context, source), options["allow-lower"] === true);
    if (options["dry-run"] === true) {
      context.output.show(offer, () => offerText(offer));
      return 0;
    }
    const agreed = await agree(context, offer, run);
    if (agreed === undefined) return 1;
    return install(context, workplace, offer, agreed);
  },
};

function runOf(text: string | boolean | undefined): ModuleRun | undefined {
  if (text === undefined) return undefined;
  if (typeof text !== "string" || !runs.includes(text))
    throw new UsageError(`--run takes ${runs.join(", ")}, not ${text}`);
  return text as ModuleRun;
}

/** Paths are relative to the working directory of the command and not to the server's. */
function located({ cwd }: CommandContext, source: string): string {
  const isPath = /^\.{1,2}(?:[\\/]|$)/.test(source) || isAbsolute(source) || /^[^@:]*\.t(?:ar\.)?gz$/.test(source);
  return isPath ? resolve(cwd, source) : source;
}

async function offerOf(workplace: Workplace, source: string, allowLower: boolean): Promise<Offer> {
  if (workplace.kind === "here") return workplace.packages.fetch(source, { allowLower });
  return call<Offer>(workplace.socket, "POST", "/packages/fetch", { source, allow_lower: allowLower });
}

/** Returns what the operator agrees to; undefined if they do not. @throws {UsageError} */
async function agree(
  context: CommandContext,
  offer: Offer,
  wanted: ModuleRun | undefined,
): Promise<Agreed | undefined> {
  const { options, stdin, stderr } = context;
  const { permissions, installed, module } = offer;
  const run = wanted ?? installed?.run ?? "sandboxed";
  if (typeof options.grant === "string") return { grant: grantFrom(options.grant, permissions), run };
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    throw new UsageError(
      `Say what ${module} may do: --grant ${grantOption(permissions)} for all that it declares, --grant none for nothing`,
    );
  }
  stderr.write(`${offerText(offer)}\n\n`);
  if (run === "trusted") stderr.write(`It will run trusted: it may do everything that the server may.\n`);
  const asks = createInterface({ input: stdin, output: stderr });
  try {
    const response = await asks.question(
      `Install ${module}${run === "trusted" ? "" : " with these permissions"}? [y/N] `,
    );
    return /^y(?:es)?$/i.test(response.trim()) ? { grant: permissions, run } : undefined;
  } finally {
    asks.close();
  }
}

async function install(context: CommandContext, workplace: Workplace, offer: Offer, agreed: Agreed): Promise<number> {
  const { module, tree, version } = offer;
  if (workplace.kind === "here") {
    await workplace.packages.install(module, tree, agreed);
    return showDone(context, `${module} ${version} is installed`);
  }
  const body = { module, tree, run: agreed.run, grant: JSON.stringify(agreed.grant) };
  return showChange(context, await call<Change>(workplace.socket, "POST", "/packages", body));
}

async function fetchLocked(context: CommandContext, workplace: Workplace): Promise<number> {
  const fetched =
    workplace.kind === "here"
      ? await workplace.packages.fetchLocked()
      : await call<string[]>(workplace.socket, "POST", "/packages/fetch-locked", {});
  const text = fetched.length === 0 ? "Everything in modules.lock is here" : `Fetched: ${fetched.join(", ")}`;
  context.output.show({ fetched }, () => text);
  return 0;
}
