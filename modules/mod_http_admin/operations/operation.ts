/**
 * Declares operations of this module itself, which have access to the Admin API that they belong
 * to.
 */
import { defineOperation as define } from "../../../core/index.ts";
import type { AdminCall, AdminFields, AdminOperation, Change, Module } from "../../../core/types.ts";
import type { Streams } from "../events.ts";
import type { Items } from "../items.ts";
import type { Watched } from "../watched.ts";

/** The argument of this module's operations. */
export interface OwnCall<F extends AdminFields = AdminFields> extends AdminCall<F>, Watched {
  /** The module that provides the Admin API. */
  readonly module: Module;
  /** Everything that modules have added to the Admin API. */
  readonly items: Items;
  readonly streams: Streams;
}

type Own<F extends AdminFields> = Omit<AdminOperation<F>, "run"> & { run(call: OwnCall<F>): unknown };

export function defineOperation<const F extends AdminFields>(operation: Own<F>): AdminOperation {
  return define(operation as unknown as AdminOperation);
}

/** Declares an operation whose response is the record of a change. */
export function defineChange<const F extends AdminFields>(
  operation: Omit<Own<F>, "response" | "isChange" | "isRaw" | "scope" | "method" | "run"> & {
    run(call: OwnCall<F>): Promise<Change>;
  },
): AdminOperation {
  return defineOperation<F>({ ...operation, method: "POST", scope: "admin", response: "Change", isChange: true });
}
