/** Declares operations of the node. They get the node and this module's state as arguments. */
import type { NodeModule } from "modhost/node";
import { defineOperation } from "../../../core/index.ts";
import type { AdminCall, AdminFields, AdminInput, AdminOperation } from "../../../core/types.ts";
import type { Directories } from "../directories.ts";
import { withHttpStatus } from "../failures.ts";
import type { History } from "../history.ts";
import type { Jobs } from "../jobs.ts";
import type { PinList } from "../pin_list.ts";
import type { UploadRecords } from "../upload_records.ts";

/**
 * Maximum length of a path in characters. A path in the namespace may be longer than one of a file
 * system; the limit here is the length of a URL.
 */
export const MAX_PATH_LENGTH = 16_384;

export interface Deps {
  readonly node: NodeModule;
  readonly jobs: Jobs;
  readonly history: History;
  readonly pins: PinList;
  readonly directories: Directories;
  readonly uploads: UploadRecords;
}

export interface NodeCall<F extends AdminFields = AdminFields> extends AdminCall<F>, Deps {}

type Declared<F extends AdminFields> = Omit<AdminOperation<F>, "run"> & {
  /**
   * Returns the entry for the record of changes. Operations without it change nothing, or record
   * their changes themselves.
   */
  records?(input: AdminInput<F>): string;
  /** A NodeError becomes a response with a status and the node's message. */
  run(call: NodeCall<F>): unknown;
};

export type NodeOperation = Declared<AdminFields>;

export function nodeOperation<const F extends AdminFields>(operation: Declared<F>): NodeOperation {
  return operation as unknown as NodeOperation;
}

/** Binds an operation to this node, and records its changes if it declares an entry. */
export function bound({ records, run, ...operation }: NodeOperation, deps: Deps): AdminOperation {
  return defineOperation({
    ...operation,
    run(call) {
      const work = () =>
        withHttpStatus(async () => {
          if (!deps.node.isOpen) await deps.node.open();
          return run({ ...call, ...deps });
        });
      return records === undefined ? work() : call.server.record(records(call.input), work, { by: call.by });
    },
  });
}

/** Returns the response schema of a list. */
export const listOf = (name: string) => ({ type: "array", items: { $ref: `#/components/schemas/${name}` } });
