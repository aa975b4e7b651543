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
    help: "Every token, with its scopes, limits and use; never a secret",
    response: { type: "array", items: { $ref: "#/components/schemas/Token" } },
    run: ({ server }) => server.tokens.list(),
  }),
  defineOperation({
    name: "token_scopes",
    method: "GET",
    path: "/tokens/scopes",
    scope: "read",
    help: "Every form that a scope of a new token can have: those of the server, and those that loaded modules declare",
    response: { type: "array", items: { $ref: "#/components/schemas/TokenScope" } },
    run: ({ server }) => server.tokens.scopes(),
  }),
  defineOperation({
    name: "token_new",
    method: "POST",
    path: "/tokens",
    scope: "admin",
    help: "Make a token; its secret is shown this once",
    input: {
      name: { type: "string", required: true, describe: "What it is called in lists, logs and records" },
      scopes: {
        type: "string",
        required: true,
        describe:
          "What it opens, with commas between: app:chat, admin:read, * for everything, and what else /tokens/scopes lists",
        maxLength: 65_536,
      },
      expires: {
        type: "string",
        describe: "When it ends: 30d, 12h, or a time in ISO 8601; default: when it is revoked",
      },
      rate: { type: "string", describe: "Requests in a time: 10/s, 600/m, 5000/h" },
      burst: { type: "number", describe: "Requests that may come at once; default: those of one second" },
      bytes_in: { type: "string", describe: "Bytes of request bodies: 1GB/day (UTC), or 10GB in total" },
      bytes_out: { type: "string", describe: "Bytes of answers, in the same form" },
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
    help: "Take a token back: what is open with it is cut, and the next request is refused",
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
