/**
 * Generates `docs/reference/token-scopes.md`: every form of a scope that the host and the bundled
 * modules declare.
 */
import { existsSync, readdirSync } from "node:fs";
import { ScopeKinds } from "#core/tokens/index.ts";
import type { DeclaredTokenScope, Module, TokenScopeItem } from "#core/types.ts";
import { code, page, table } from "./markdown.ts";

const modules = new URL("../../../modules/", import.meta.url);

/**
 * Returns the forms by the modules that declare them. Each module declares its kinds in a file
 * `scopes.ts`.
 */
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
    table(["Scope", "Module", "Gives access to"], rows),
    own,
  ]);
}

const introduction = `For operators: everything that a [token](../guides/operate/tokens.md) can open. A scope is a kind and, after a colon, a part of that kind. Replace words
in capitals.

\`app:NAME\` and \`*\` belong to the host. Each of the others is declared by a module while it is loaded. \`modhost token scopes\` lists
the scopes of your server, including those of your own modules.`;

const own = `A module declares a kind by [\`module.provides("token-scope", ...)\`](module-api.md#tokenscopeitem):
[Scopes of your own](../guides/module/tokens.md#scopes-of-your-own). If a module is unloaded, its scopes stay with their tokens, and open
nothing until the module is loaded again.`;
