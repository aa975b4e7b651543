/** Operations on the tokens of the server. */
import { ModhostError } from "../../../core/index.ts";
import { AdminError, type AdminErrorCode } from "../errors.ts";
import { defineOperation } from "./operation.ts";

const codes: Readonly<Record<string, AdminErrorCode>> = {
  TOKEN_INVALID: "invalid",
  TOKEN_EXISTS: "exists",
  TOKEN_UNKNOWN: "unknown_token",
  TOKENS_UNREADABLE: "failed",
  TOKENS_UNWRITABLE: "failed",
};

export const tokenOperations = [
  defineOperation({
    name: "tokens",
    method: "GET",
    path: "/tokens",
    scope: "read",
    help: "Every token with its scopes, limits and use, without its secret",
    response: { type: "array", items: { $ref: "#/components/schemas/Token" } },
    run: ({ server }) => server.tokens.list(),
  }),
  defineOperation({
    name: "token_scopes",
    method: "GET",
    path: "/tokens/scopes",
    scope: "read",
    help: "Every form that a scope of a new token can have: those of the server and of loaded modules",
    response: { type: "array", items: { $ref: "#/components/schemas/TokenScope" } },
    run: ({ server }) => server.tokens.scopes(),
  }),
  defineOperation({
    name: "token_new",
    method: "POST",
    path: "/tokens",
    scope: "admin",
    help: "Create a token; its secret is shown only once",
    input: {
      name: { type: "string", required: true, describe: "Its name in lists, logs and records" },
      scopes: {
        type: "string",
        required: true,
        describe:
          "Its scopes, separated by commas: app:chat, admin:read, * for everything, and others that /tokens/scopes lists",
        maxLength: 65_536,
      },
      expires: {
        type: "string",
        describe: "When it expires: 30d, 12h, or a time in ISO 8601; default: never",
      },
      rate: { type: "string", describe: "Maximum rate of requests: 10/s, 600/m, 5000/h" },
      burst: { type: "number", describe: "Maximum number of requests at once; default: those of one second" },
      bytes_in: { type: "string", describe: "Maximum bytes of request bodies: 1GB/day (UTC), or 10GB in total" },
      bytes_out: { type: "string", describe: "Maximum bytes of responses, in the same form" },
    },
    response: "MadeToken",
    run: ({ server, by, input: { scopes, ...terms } }) =>
      withTokenErrors(
        server.tokens.create({ ...terms, scopes: scopes.split(",").map((scope) => scope.trim()) }, { by }),
      ),
  }),
  defineOperation({
    name: "token_revoke",
    method: "POST",
    path: "/tokens/{name}/revoke",
    scope: "admin",
    help: "Revoke a token: its open requests are cut, and later ones are refused",
    input: { name: { type: "string", required: true, describe: "The token's name or id" } },
    response: "Token",
    run: ({ server, by, input }) => withTokenErrors(server.tokens.revoke(input.name, { by })),
  }),
];

async function withTokenErrors<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const code = ModhostError.is(error) ? codes[error.code] : undefined;
    throw code === undefined ? error : new AdminError(code, (error as Error).message);
  });
}
