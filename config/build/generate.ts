/**
 * Writes the files that are derived from the sources: the commented sample, the JSON Schema and the
 * reference pages. `npm run generate` runs it. A test compares the files with the sources.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { operationsOf as backupOperationsOf } from "#modules/mod_backup/operations.ts";
import { shapes as backupShapes } from "#modules/mod_backup/shapes.ts";
import { operations } from "#modules/mod_http_admin/operations/index.ts";
import { shapes } from "#modules/mod_http_admin/shapes.ts";
import { operations as nodeOperations } from "#modules/mod_http_admin_node/operations/index.ts";
import { shapes as nodeShapes } from "#modules/mod_http_admin_node/shapes.ts";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { operationsOf as proxyOperationsOf, shapes as proxyShapes } from "#modules/mod_http_proxy/operations.ts";
import { adminApiPage } from "./generate/admin_api.ts";
import { commandApiPage } from "./generate/command_api.ts";
import { commandLinePage } from "./generate/command_line.ts";
import { errorsPage } from "./generate/errors.ts";
import { eventsPage } from "./generate/events.ts";
import { moduleApiPage } from "./generate/module_api.ts";
import { nodeApiPage } from "./generate/node_api.ts";
import { nodeConfigPage } from "./generate/node_config.ts";
import { nodeErrorsPage } from "./generate/node_errors.ts";
import { optionsPage } from "./generate/options.ts";
import { rpcPages } from "./generate/rpc.ts";
import { sample } from "./generate/sample.ts";
import { schema } from "./generate/schema.ts";
import { sections } from "./generate/sections.ts";
import { readSources } from "./generate/sources.ts";
import { testingPage } from "./generate/testing.ts";
import { tokenScopesPage } from "./generate/token_scopes.ts";
import { wrapMarkdown } from "./prose/rules.ts";

export { sections };

const root = new URL("../../", import.meta.url);

const noApps = { apps: new Set<never>(), find: () => undefined, report: () => undefined };
const proxyOperations = proxyOperationsOf(noApps, () => 0);

const adminParts = [
  { title: "Operations of the server", operations, shapes },
  { title: "Operations of the node", operations: nodeOperations, shapes: nodeShapes },
  { title: "Operations of the proxy", operations: proxyOperations, shapes: proxyShapes },
  { title: "Operations of backups", operations: backupOperationsOf(), shapes: backupShapes },
];

/** Returns every generated file: its path from the root of the package, and its content. */
export async function generate(): Promise<Map<string, string>> {
  const options = await sections();
  const sources = readSources(fileURLToPath(root));
  const files: (readonly [string, string])[] = [
    ["config/modhost.config.sample.yaml", sample(options)],
    ["config/modhost.schema.json", `${JSON.stringify(schema(options), null, 2)}\n`],
    ["docs/reference/admin-api.md", adminApiPage(adminParts)],
    ["docs/reference/command-api.md", commandApiPage(sources)],
    ["docs/reference/command-line.md", await commandLinePage()],
    ["docs/reference/errors.md", errorsPage()],
    ["docs/reference/events.md", eventsPage(sources)],
    ["docs/reference/module-api.md", moduleApiPage(sources)],
    ["docs/reference/node.md", nodeApiPage(sources)],
    ["docs/reference/node-config.md", nodeConfigPage()],
    ["docs/reference/node-errors.md", nodeErrorsPage(fileURLToPath(root))],
    ["docs/reference/options.md", optionsPage(options)],
    ...[...rpcPages(table)].map(([name, text]) => [`docs/reference/rpc/${name}`, text] as const),
    ["docs/reference/testing.md", testingPage(sources)],
    ["docs/reference/token-scopes.md", await tokenScopesPage()],
  ];
  return new Map(files.map(([path, text]) => [path, path.endsWith(".md") ? wrapMarkdown(text) : text]));
}

async function write(): Promise<void> {
  for (const [path, content] of await generate()) {
    const file = new URL(path, root);
    await mkdir(new URL(".", file), { recursive: true });
    await writeFile(file, content);
    console.log(fileURLToPath(file));
  }
}

// Tests import this module, so it must not await at its top level.
if (import.meta.main) void write();
