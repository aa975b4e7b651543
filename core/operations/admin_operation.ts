/** Declares operations of the Admin API, with the types of their fields. */
import type { AdminCall, AdminFields, AdminOperation, Change } from "../types.ts";

/** Gives `run` the types of the fields that the operation declares: their values are checked by the declaration. */
export function defineOperation<const F extends AdminFields>(operation: AdminOperation<F>): AdminOperation {
  return operation as unknown as AdminOperation;
}

/** The same for one whose answer is the record of a change. */
export function defineChange<const F extends AdminFields>(
  operation: Omit<AdminOperation<F>, "answer" | "isChange" | "isRaw" | "scope" | "method" | "run"> & {
    run(call: AdminCall<F>): Promise<Change>;
  },
): AdminOperation {
  return defineOperation<F>({ ...operation, method: "POST", scope: "admin", answer: "Change", isChange: true });
}
