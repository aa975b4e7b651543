/** Declares operations of the Admin API, with the types of their fields. */
import type { AdminCall, AdminFields, AdminOperation, Change } from "../types.ts";

/**
 * Returns the operation unchanged and gives `run` the types of its declared fields, whose values
 * the host checks.
 */
export function defineOperation<const F extends AdminFields>(operation: AdminOperation<F>): AdminOperation {
  return operation as unknown as AdminOperation;
}

/** Does the same for an operation whose response is the record of a change. */
export function defineChange<const F extends AdminFields>(
  operation: Omit<AdminOperation<F>, "response" | "isChange" | "isRaw" | "scope" | "method" | "run"> & {
    run(call: AdminCall<F>): Promise<Change>;
  },
): AdminOperation {
  return defineOperation<F>({ ...operation, method: "POST", scope: "admin", response: "Change", isChange: true });
}
