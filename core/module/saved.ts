/** The state that a module has saved for the instance that replaces it in another process. */
import { reasonOf } from "../util/errors.ts";
import type { Instance } from "./instance.ts";

export interface SavedState {
  /** `name@host`. */
  readonly key: string;
  readonly value: unknown;
}

/** Collects the saved state of each instance; an error of one is logged, and its state left out. */
export async function saveAll(instances: readonly Instance[]): Promise<SavedState[]> {
  const states: SavedState[] = [];
  for (const instance of instances) {
    try {
      const { value } = await instance.save();
      if (value !== undefined) states.push({ key: instance.key, value });
    } catch (error) {
      instance.fault("saving its state", error);
    }
  }
  return states;
}

/** Returns each state only once: a module that is loaded again later starts without it. */
export function givenOnce(
  states: readonly SavedState[] = [],
): (key: string) => { readonly value: unknown } | undefined {
  const left = new Map(states.map(({ key, value }) => [key, { value }]));
  return (key) => {
    const found = left.get(key);
    left.delete(key);
    return found;
  };
}

/**
 * Builds an instance with its saved state; if it fails to restore that, logs a warning and builds
 * it without.
 */
export async function withState(
  saved: { readonly value: unknown } | undefined,
  build: (options: { readonly saved?: { readonly value: unknown } }) => Promise<Instance>,
): Promise<Instance> {
  if (saved === undefined) return build({});
  try {
    return await build({ saved });
  } catch (error) {
    const instance = await build({});
    instance.module.log.warn("starts without its saved state: %s", reasonOf(error));
    return instance;
  }
}
