import type { Instance } from "./instance.ts";

/** Activates instances in one synchronous step: all or none. */
export function commitAll(instances: readonly Instance[]): void {
  const done: Instance[] = [];
  try {
    for (const instance of instances) {
      instance.commit();
      done.push(instance);
    }
  } catch (error) {
    for (const instance of done.reverse()) instance.withdraw();
    throw error;
  }
}
