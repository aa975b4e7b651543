/** Tokens of a server that does not run: its file is edited in its place. */
import { join } from "node:path";
import { loadConfig } from "../../config/index.ts";
import { AuditFile } from "../../operations/audit.ts";
import { Changes } from "../../operations/changes.ts";
import { assertScopes, type TokensDeps, tokenChanges } from "../../operations/token_changes.ts";
import { TokenStore } from "../../tokens/index.ts";
import type { ServerTokens } from "../../types.ts";
import type { CommandContext } from "../command.ts";
import { hostOptions, withHost } from "../hosted.ts";

/**
 * The tokens of the server that `modhost run` would be with the same options. A server that runs all the same sees what
 * was changed within a second; changes are lines of its audit file.
 */
export async function withTokenFile<T>(
  context: CommandContext,
  use: (tokens: ServerTokens, path: string) => Promise<T>,
): Promise<T> {
  const { configPath, cwd, env, stderr } = context;
  const config = await loadConfig({ path: configPath, cwd, env });
  const folder = String(config.value("data_path"));
  const path = join(folder, "tokens.json");
  const warn = (text: string) => stderr.write(`modhost: ${text}\n`);
  const audit = new AuditFile(join(folder, "audit.jsonl"), (reason) => warn(`The change is not recorded: ${reason}`));
  const changes = new Changes({ mask: (text) => config.mask(text), over: (change) => audit.append(change) });
  const store = new TokenStore({ path: () => path, log: { error: (_format, ...values) => warn(values.join(" ")) } });
  const tokens: TokensDeps = {
    list: () => store.list(),
    figures: () => store.figures(),
    revoke: (nameOrId) => store.revoke(nameOrId),
    create: async (wanted, by) => {
      // What there is to be opened the modules know that this server would have.
      await withHost(hostOptions(context, []), (host) =>
        assertScopes((event, data) => host.fire(event, data), wanted.scopes),
      );
      return store.create(wanted, by);
    },
  };
  try {
    return await use(
      tokenChanges(tokens, changes, (by = `uid ${process.getuid?.() ?? "unknown"} without a server`) => ({ by })),
      path,
    );
  } finally {
    await changes.settled();
    await audit.written();
  }
}
