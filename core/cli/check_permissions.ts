/** Compares the permissions that modules declare with those that they are granted. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Config } from "../config/index.ts";
import { DATA, type ModuleSettings, settingsOf, unenforcedKinds } from "../permissions/index.ts";
import type { ModuleState } from "../types.ts";

/** Returns one sentence for each setting of a module that will not have the intended effect. */
export function permissionWarnings(config: Config, states: readonly ModuleState[]): string[] {
  const modules = config.value("modules");
  const byName = new Map(states.map((state) => [state.name, state]));
  const idle = Object.keys((modules ?? {}) as object).filter((name) => !byName.has(name));
  return [
    ...idle.map((name) => `modules.${name}: the module ${name} is not loaded`),
    ...[...byName.values()].flatMap((state) => warningsFor(state, settingsOf(modules, state.name), config)),
  ];
}

function warningsFor(state: ModuleState, settings: ModuleSettings, config: Config): string[] {
  const { name, run } = state;
  const { grant, limits, audit } = settings;
  const at = `modules.${name}`;
  if (run === "trusted") {
    const fields = Object.entries({ grant, limits, audit: audit || undefined });
    const idle = fields.flatMap(([field, value]) => (value === undefined ? [] : [field]));
    return idle.map((field) => `${at}.${field} has no effect: ${name} runs trusted, and may do everything`);
  }
  const audited = audit ? [`${at}.audit: nothing is refused to ${name}`] : [];
  if (run === "isolated" && grant === undefined) return audited;
  const unenforced = run === "isolated" && grant !== undefined ? unenforcedKinds(grant) : [];
  return [
    ...audited,
    ...(unenforced.length === 0
      ? []
      : [`${at}.grant: ${unenforced.join(", ")} restrict only a sandboxed module, and ${name} runs isolated`]),
    ...differences(state, at),
    ...missingPaths(settings, config, state).map((path) => `${at}.grant: there is no ${path}`),
  ];
}

function differences({ name, permissions = [] }: ModuleState, at: string): string[] {
  return permissions.flatMap(({ text, is_declared, is_granted, is_enforced, grant }) => {
    if (is_declared && is_enforced && !is_granted)
      return [`${name} declares that it ${text}, which is not granted: add ${grant}`];
    return is_granted && !is_declared ? [`${at}.grant: ${name} ${text}, which it does not declare`] : [];
  });
}

/** Returns granted paths at which nothing exists. A module's own data folder is created for it. */
function missingPaths({ grant = {} }: ModuleSettings, { directory }: Config, { file }: ModuleState): string[] {
  const { read = [], write = [], run = [] } = grant;
  const folder = file === undefined ? directory : resolve(file, "..");
  const paths = [...read, ...write.filter((item) => item !== DATA), ...run];
  return paths.map((item) => resolve(folder, item)).filter((path) => !existsSync(path));
}
