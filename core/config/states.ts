/** Lists every option of a configuration, with its current value and source. */
import type { OptionDeclaration, OptionState, OptionValueState } from "../types.ts";
import type { Config } from "./config.ts";
import { hasSecret, valueText } from "./convert.ts";
import { variableOf } from "./environment.ts";

/**
 * Returns the options by name. `waiting` has the options whose new values wait for the next start.
 */
export function optionStates(config: Config, waiting: readonly string[] = []): OptionState[] {
  const names = [...config.names()].filter((name) => !name.startsWith("$"));
  return names.sort().map((name) => stateOf(config, name, waiting.includes(name)));
}

function stateOf(config: Config, name: string, isWaiting: boolean): OptionState {
  const declaration = config.declarations().get(name);
  const { type, describe, values, min, max, unit, owner } = declaration ?? {};
  const own = config.hosts().filter((host) => config.written(name, host) !== undefined);
  return {
    name,
    ...valueState(config, name, declaration),
    ...(isWaiting ? { is_waiting: true } : {}),
    owner,
    type,
    describe,
    default: declaration?.default === undefined ? undefined : valueText(declaration, declaration.default),
    values,
    min,
    max,
    unit,
    is_secret: declaration === undefined || hasSecret(declaration),
    is_per_host: declaration?.per_host !== false,
    applies: declaration?.applies === "start" ? "start" : "now",
    variable: variableOf(name),
    hosts: own.map((host) => ({ host, ...valueState(config, name, declaration, host) })),
  };
}

function valueState(
  config: Config,
  name: string,
  declaration: OptionDeclaration | undefined,
  host?: string,
): OptionValueState {
  const source = config.source(name, host);
  if (declaration === undefined) return { source };
  const value = readable(config, name, host);
  return { source, value: value === undefined ? undefined : config.mask(valueText(declaration, value)) };
}

/** Returns a wrong value as it is written; the module that reads it has failed because of it. */
function readable(config: Config, name: string, host: string | undefined): unknown {
  try {
    return config.shown(name, host);
  } catch {
    return config.written(name, host);
  }
}
