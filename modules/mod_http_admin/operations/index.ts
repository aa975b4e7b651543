/** Every operation of the Admin API. */
import { openApi } from "../openapi.ts";
import { eventOperations } from "./events.ts";
import { httpOperations } from "./http.ts";
import { moduleOperations } from "./modules.ts";
import { type AnyOperation, defineOperation } from "./operation.ts";
import { serverOperations } from "./server.ts";
import { tokenOperations } from "./tokens.ts";

export const operations: readonly AnyOperation[] = [
  ...serverOperations,
  ...moduleOperations,
  ...httpOperations,
  ...eventOperations,
  ...tokenOperations,
  defineOperation({
    name: "openapi",
    method: "GET",
    path: "/openapi.json",
    scope: "read",
    help: "This table as an OpenAPI document",
    answer: { type: "object" },
    run: ({ server }) => openApi(operations, server.status().version),
  }),
];

/** @throws Error for a name that is in no table */
export function operationOf(name: string): AnyOperation {
  const found = operations.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`The Admin API has no operation ${name}`);
  return found;
}
