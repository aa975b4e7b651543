/** Edits the token file of a server that is not running. */
import { join } from "node:path";
import { loadConfig } from "../../config/index.ts";
import { AuditFile } from "../../operations/audit.ts";
import { Changes } from "../../operations/changes.ts";
import { type TokensDeps, tokenChanges } from "../../operations/token_changes.ts";
import { TokenStore } from "../../tokens/index.ts";
import type { Module, ServerTokens } from "../../types.ts";
import type { CommandContext } from "../command.ts";
import { hostOptions, withHost } from "../hosted.ts";

/**
 * Loads the modules that this server would load, since they declare the scopes that tokens can
 * have. No port is opened.
 */
export async function withLoadedTokens<T>(
  context: CommandContext,
  use: (tokens: ServerTokens) => T | Promise<T>,
): Promise<T> {
  let tokens: ServerTokens | undefined;
  const reader = { name: "command_token", load: (module: Module) => void (tokens = module.server.tokens) };
  return withHost({ ...hostOptions(context, []), modules: [reader] }, () => use(tokens as ServerTokens));
}

/**
 * Calls `use` with the tokens of the server that `modhost run` would start with the same options. A
 * server that is running after all sees the changes within a second; they are written to its audit
 * file.
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
    metrics: () => store.metrics(),
    revoke: (nameOrId) => store.revoke(nameOrId),
    scopes: () => store.scopes(),
    create: (wanted, by) => withLoadedTokens(context, (loaded) => loaded.create(wanted, { by })),
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
