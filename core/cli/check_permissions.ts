/** Compares the permissions that modules declare with those that they are granted. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Config } from "../config/index.ts";
import { DATA, grantText, type ModuleSettings, settingsOf, unenforcedKinds } from "../permissions/index.ts";
import type { ModuleState } from "../types.ts";

/** Returns one sentence for each setting of a module that will not have the intended effect. */
export function permissionWarnings(config: Config, states: readonly ModuleState[]): string[] {
  const modules = config.value("modules");
  const byName = new Map(states.map((state) => [state.name, state]));
  const all = new Set(byName.keys());
  const idle = Object.keys((modules ?? {}) as object).filter((name) => !all.has(name));
  return [
    ...idle.map((name) => `modules.${name}: the module ${name} is not loaded`),
    ...[...byName.values()].flatMap((state) => warningsFor(state, settingsOf(modules, state.name), config, all)),
  ];
}

function warningsFor(state: ModuleState, settings: ModuleSettings, config: Config, all: ReadonlySet<string>): string[] {
  const { name, run } = state;
  const { grant, limits, audit } = settings;
  const at = `modules.${name}`;
  const namespaces = settings.namespaces === "auto" ? undefined : settings.namespaces;
  const spare = settings.spare || undefined;
  const setFields = (fields: Readonly<Record<string, unknown>>): string[] =>
    Object.entries(fields).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (run === "trusted") {
    const idle = setFields({ grant, limits, audit: audit || undefined, namespaces, spare });
    return idle.map((field) => `${at}.${field} has no effect: ${name} runs trusted, and may do everything`);
  }
  const general = audit ? [`${at}.audit: nothing is refused to ${name}`] : [];
  if (run === "isolated") {
    const unenforced = [
      ...setFields({ namespaces, spare }),
      ...unenforcedKinds(grant ?? {}).map((kind) => `grant.${kind}`),
    ];
    general.push(
      ...unenforced.map((field) => `${at}.${field} has no effect: ${name} runs isolated, and not sandboxed`),
    );
    if (grant === undefined) return general;
  }
  return [
    ...general,
    ...differences(state, at),
    ...missing(settings, config, state, all).map((what) => `${at}.grant: ${what}`),
  ];
}

function differences({ name, permissions = [] }: ModuleState, at: string): string[] {
  const ungranted = permissions.filter((each) => each.is_declared && each.is_enforced && !each.is_granted);
  const items = ungranted.map(({ kind, what }) => ({ kind, item: what }));
  return [
    ...permissions.flatMap(({ text, is_declared, is_granted, is_enforced, grant }) => {
      if (is_declared && is_enforced && !is_granted)
        return [`${name} declares that it ${text}, which is not granted: add ${grant}`];
      return is_granted && !is_declared ? [`${at}.grant: ${name} ${text}, which it does not declare`] : [];
    }),
    ...(items.length < 2 ? [] : [`to grant ${name} all of these that it declares, add ${grantText(name, ...items)}`]),
  ];
}

/** Returns what a grant names and what does not exist, each as a sentence. */
function missing(settings: ModuleSettings, config: Config, state: ModuleState, all: ReadonlySet<string>): string[] {
  const { call = {}, options = [] } = settings.grant ?? {};
  const declared = config.declarations();
  return [
    ...missingPaths(settings, config, state).map((path) => `there is no ${path}`),
    ...options.filter((name) => !declared.has(name)).map((name) => `there is no option ${name}`),
    ...Object.keys(call)
      .filter((name) => !all.has(name))
      .map((name) => `call names ${name}, which is not loaded`),
  ];
}

/** Returns granted paths at which nothing exists. A module's own data folder is created for it. */
function missingPaths({ grant = {} }: ModuleSettings, { directory }: Config, { file }: ModuleState): string[] {
  const { read = [], write = [], run = [] } = grant;
  const folder = file === undefined ? directory : resolve(file, "..");
  const paths = [...read, ...write.filter((item) => item !== DATA), ...run];
  return paths.map((item) => resolve(folder, item)).filter((path) => !existsSync(path));
}
