/**
 * `docs/reference/token-scopes.md`: every form of a scope that the host and the bundled modules
 * declare.
 */
import { existsSync, readdirSync } from "node:fs";
import { ScopeKinds } from "#core/tokens/index.ts";
import type { DeclaredTokenScope, Module, TokenScopeItem } from "#core/types.ts";
import { code, page, table } from "./markdown.ts";

const modules = new URL("../../../modules/", import.meta.url);

/** The forms by the modules that declare them: each has its kinds in a file `scopes.ts`. */
export async function bundledScopes(): Promise<DeclaredTokenScope[]> {
  const kinds = new ScopeKinds();
  for (const folder of readdirSync(modules).sort()) {
    const file = new URL(`${folder}/scopes.ts`, modules);
    if (!existsSync(file)) continue;
    const { scopes } = (await import(file.href)) as { readonly scopes: readonly TokenScopeItem[] };
    const name = folder.replace(/^mod_/, "");
    for (const item of scopes) kinds.add({ item, owner: { name } as Module });
  }
  return kinds.forms();
}

export async function tokenScopesPage(): Promise<string> {
  const rows = (await bundledScopes()).map(({ form, module, help }) => [code(form), module ?? "", help]);
  return page("Token scopes", "core/tokens/scopes.ts and the files scopes.ts of bundled modules", [
    introduction,
    table(["Scope", "Module", "Opens"], rows),
    own,
  ]);
}

const introduction = `What a [token](../guides/operate/tokens.md) can open. A scope is a kind and, after a colon, what is opened of that kind;
words in capitals are filled in. \`app:NAME\` and \`*\` are the host's own, and a module declares each of the others while it is
loaded. \`modhost token scopes\` lists those of your server, the ones of your own modules among them.`;

const own = `A module declares a kind by [\`module.provides("token-scope", ...)\`](module-api.md#tokenscopeitem);
[Scopes of your own](../guides/module/tokens.md#scopes-of-your-own) shows how. A scope whose module is not loaded stays with its token and opens
nothing until the module is loaded again.`;
