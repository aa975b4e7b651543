/**
 * Temporary folders with files, and hosts with modules of the test. Both are removed when the test
 * ends.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import type { InlineModule } from "#core/inline_modules.ts";
import { createTestHost, type LogEntry, type TestHost, type TestHostOptions } from "#core/testing/index.ts";
import type { LogLevel, Module, ModuleFunction, ModuleState } from "#core/types.ts";

export type Files = Readonly<Record<string, string>>;

export async function write(folder: string, files: Files): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

export async function folderOf(t: TestContext, files: Files): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await write(folder, files);
  return folder;
}

/** Starts a host that listens on no port unless a module requests one. */
export async function hostOf(
  t: TestContext,
  modules: Readonly<Record<string, ModuleFunction | Exclude<InlineModule, string>>>,
  options: Omit<TestHostOptions, "modules"> = {},
): Promise<TestHost> {
  const given = Object.entries(modules).map(([name, module]) =>
    typeof module === "function" ? { name, load: module } : { ...module, name },
  );
  const host = await createTestHost({ allow_failed: true, ...options, modules: given });
  t.after(() => host.stop());
  return host;
}

/** Starts a host with the modules in a plugin folder with these files. */
export async function pluginHost(
  t: TestContext,
  files: Files,
  config: Record<string, unknown> = {},
): Promise<TestHost & { readonly plugins: string }> {
  const plugins = await folderOf(t, files);
  const host = await createTestHost({
    allow_failed: true,
    // A module of a test may take longer to load on a busy machine than the default allows.
    config: { plugin_paths: [plugins], plugin_autoload: true, load_timeout: 240, ...config },
  });
  t.after(() => host.stop());
  return { ...host, plugins };
}

export function stateOf(test: TestHost, name: string, host = "*"): ModuleState | undefined {
  return test.host.modules().find((state) => state.name === name && state.host === host);
}

/** Returns the log messages of a level. */
export function logged(test: TestHost, level: LogLevel): LogEntry[] {
  return test.logged(level);
}

/** A module with an app of one route. */
export const hello = (module: Module): void => {
  module.depends("http");
  module.provides("http", { route: { GET: () => "hello" } });
};
