/** What modules have saved for instances that go on in their place in another host. */
import { reasonOf } from "../util/errors.ts";
import type { Instance } from "./instance.ts";

export interface SavedState {
  /** `name@host`. */
  readonly key: string;
  readonly value: unknown;
}

/** What each instance saves; one that cannot is told of, and left out. */
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

/** Gives each state once: a module that is loaded again later begins anew. */
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

/** An instance with its state; one that cannot take it is told of that, and begins without. */
export async function withState(
  saved: { readonly value: unknown } | undefined,
  build: (options: { readonly saved?: { readonly value: unknown } }) => Promise<Instance>,
): Promise<Instance> {
  if (saved === undefined) return build({});
  try {
    return await build({ saved });
  } catch (error) {
    const instance = await build({});
    instance.module.log.warn("begins without the state that was saved: %s", reasonOf(error));
    return instance;
  }
}
