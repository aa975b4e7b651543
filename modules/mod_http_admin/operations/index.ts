/** Every operation of the Admin API. */
import { moduleOperations } from "./modules.ts";
import type { AnyOperation } from "./operation.ts";
import { serverOperations } from "./server.ts";

export const operations: readonly AnyOperation[] = [...serverOperations, ...moduleOperations];
