/** How operations of the node are declared: as those of any module, with the node and what is kept beside it at hand. */
import type { NodeModule } from "modhost/node";
import { defineOperation } from "../../../core/index.ts";
import type { AdminCall, AdminFields, AdminInput, AdminOperation } from "../../../core/types.ts";
import type { Directories } from "../directories.ts";
import { told } from "../failures.ts";
import type { History } from "../history.ts";
import type { Jobs } from "../jobs.ts";
import type { PinList } from "../pin_list.ts";
import type { UploadRecords } from "../upload_records.ts";

/** Characters of a path, which in the namespace may be longer than one of a file system: as many as fit a URL here. */
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
  /** What stands in the record of changes; operations without it change nothing, or see to their record themselves. */
  records?(input: AdminInput<F>): string;
  /** NodeErrors are answered with a status and their own words. */
  run(call: NodeCall<F>): unknown;
};

export type NodeOperation = Declared<AdminFields>;

export function nodeOperation<const F extends AdminFields>(operation: Declared<F>): NodeOperation {
  return operation as unknown as NodeOperation;
}

/** The operation as the Admin API takes it: of this node, and recorded where it says so. */
export function bound({ records, run, ...operation }: NodeOperation, deps: Deps): AdminOperation {
  return defineOperation({
    ...operation,
    run(call) {
      const work = () =>
        told(async () => {
          if (!deps.node.isOpen) await deps.node.open();
          return run({ ...call, ...deps });
        });
      return records === undefined ? work() : call.server.record(records(call.input), work, { by: call.by });
    },
  });
}

/** The answer of a list of what a shape describes. */
export const listOf = (name: string) => ({ type: "array", items: { $ref: `#/components/schemas/${name}` } });
