/** Operations of this module itself: they know the Admin API that they are part of. */
import { defineOperation as define } from "../../../core/index.ts";
import type { AdminCall, AdminFields, AdminOperation, Change, Module } from "../../../core/types.ts";
import type { Streams } from "../events.ts";
import type { Items } from "../items.ts";
import type { Watched } from "../watched.ts";

/** What an operation of this module is called with. */
export interface OwnCall<F extends AdminFields = AdminFields> extends AdminCall<F>, Watched {
  /** The module of the Admin API. */
  readonly module: Module;
  /** All that modules have added to it. */
  readonly items: Items;
  readonly streams: Streams;
}

type Own<F extends AdminFields> = Omit<AdminOperation<F>, "run"> & { run(call: OwnCall<F>): unknown };

export function defineOperation<const F extends AdminFields>(operation: Own<F>): AdminOperation {
  return define(operation as unknown as AdminOperation);
}

/** An operation whose answer is a record of a change. */
export function defineChange<const F extends AdminFields>(
  operation: Omit<Own<F>, "answer" | "isChange" | "isRaw" | "scope" | "method" | "run"> & {
    run(call: OwnCall<F>): Promise<Change>;
  },
): AdminOperation {
  return defineOperation<F>({ ...operation, method: "POST", scope: "admin", answer: "Change", isChange: true });
}
