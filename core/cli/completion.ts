import { adminSocket, send } from "./admin/client.ts";
import { type Command, type CommandContext, type KnownNames, UsageError } from "./command.ts";
import { type CompletionSites, scripts } from "./completion/scripts.ts";

/** For each kind of name, the path of the Admin API that lists the names, and how to read one. */
const sources: Readonly<Record<KnownNames, Source>> = {
  modules: { path: "/modules", name: ({ name }) => name },
  tokens: { path: "/tokens", name: ({ name }) => name },
  // The part in capitals stands for a name: `app:NAME` completes to `app:`.
  scopes: { path: "/tokens/scopes", name: ({ form }) => form?.replace(/[A-Z].*$/, "") },
  // People type only the part before the star.
  routes: { path: "/routes", name: ({ path }) => path?.replace(/\*$/, "") },
};

interface Source {
  readonly path: string;
  name(item: Readonly<Record<string, string>>): string | undefined;
}

const shells = Object.keys(scripts);

/**
 * Returns the command; `sites` returns the completion sites of all commands, including this one.
 */
export function completionOf(sites: (context: CommandContext) => Promise<CompletionSites>): Command {
  return {
    name: "completion",
    arguments: `${shells.join("|")} | names ${Object.keys(sources).join("|")}`,
    help: "Print the script that lets a shell complete commands, options and names",
    words: [...shells, "names"],
    about: [
      'bash (4 or later): eval "$(modhost completion bash)" in ~/.bashrc. zsh: eval "$(modhost completion zsh)" in ~/.zshrc,',
      "after compinit. fish: modhost completion fish > ~/.config/fish/completions/modhost.fish. The script knows the commands of",
      "the modules that are configured when it is printed; --config names another configuration. It gets names of modules,",
      "tokens, scopes and routes from the running server: completion names prints them, or nothing if no server runs.",
    ].join("\n"),
    async run(context) {
      const [wanted = "", ...more] = context.args;
      if (wanted === "names") return names(context, more);
      const script = Object.hasOwn(scripts, wanted) ? scripts[wanted] : undefined;
      if (script === undefined || more.length > 0)
        throw new UsageError(`completion takes the name of a shell: ${shells.join(", ")}`);
      context.stdout.write(script(await sites(context)));
      return 0;
    },
  };
}

/** Maximum number of milliseconds that a completion waits for names. */
const MAX_WAIT = 2000;

/**
 * Prints names. It never prints an error, since that would disturb the line: without a server there
 * are no names.
 */
async function names(context: CommandContext, [kind = "", ...more]: readonly string[]): Promise<number> {
  const source = Object.hasOwn(sources, kind) ? sources[kind as KnownNames] : undefined;
  if (source === undefined || more.length > 0)
    throw new UsageError(`completion names takes one of ${Object.keys(sources).join(", ")}`);
  try {
    const socket = await adminSocket(context);
    const signal = AbortSignal.timeout(MAX_WAIT);
    const { value } = await send<Record<string, string>[]>(socket, "GET", source.path, undefined, signal);
    for (const name of new Set(value.map(source.name))) context.stdout.write(`${name}\n`);
  } catch {}
  return 0;
}
