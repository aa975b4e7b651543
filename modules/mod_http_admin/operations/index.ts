/** All operations of the server itself. Modules add others. */
import type { AdminOperation } from "../../../core/types.ts";
import { openApi } from "../openapi.ts";
import { configOperations } from "./config.ts";
import { eventOperations } from "./events.ts";
import { historyOperations } from "./history.ts";
import { httpOperations } from "./http.ts";
import { moduleOperations } from "./modules.ts";
import { defineOperation } from "./operation.ts";
import { recentOperations } from "./recent.ts";
import { serverOperations } from "./server.ts";
import { tokenOperations } from "./tokens.ts";

export const operations: readonly AdminOperation[] = [
  ...serverOperations,
  ...moduleOperations,
  ...httpOperations,
  ...configOperations,
  ...historyOperations,
  ...recentOperations,
  ...eventOperations,
  ...tokenOperations,
  defineOperation({
    name: "openapi",
    method: "GET",
    path: "/openapi.json",
    scope: "read",
    help: "Every operation, including those of modules, as an OpenAPI document",
    response: { type: "object" },
    run: ({ items, server }) => openApi(items, server.status().version),
  }),
];

/** @throws Error for an unknown name */
export function operationOf(name: string): AdminOperation {
  const found = operations.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`The Admin API has no operation ${name}`);
  return found;
}
