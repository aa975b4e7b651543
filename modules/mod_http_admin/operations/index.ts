/** Every operation of the Admin API. */
import { httpOperations } from "./http.ts";
import { moduleOperations } from "./modules.ts";
import type { AnyOperation } from "./operation.ts";
import { serverOperations } from "./server.ts";

export const operations: readonly AnyOperation[] = [...serverOperations, ...moduleOperations, ...httpOperations];

/** @throws Error for a name that is in no table */
export function operationOf(name: string): AnyOperation {
  const found = operations.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`The Admin API has no operation ${name}`);
  return found;
}
