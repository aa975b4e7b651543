import {
  adminSocket,
  type Command,
  type CommandContext,
  columns,
  NoServerError,
  socketOption,
  UsageError,
  withLoadedTokens,
  withTokenFile,
} from "../../../core/cli/index.ts";
import type { DeclaredTokenScope, MadeToken, NewToken, ServerTokens, TokenInfo } from "../../../core/types.ts";
import { operationOf } from "../operations/index.ts";
import { callOperation } from "./commands/from_table.ts";

/** Options of `new`, by the operation's field. */
const terms = {
  expires: "expires",
  rate: "rate",
  burst: "burst",
  bytes_in: "bytes-in",
  bytes_out: "bytes-out",
} as const;

const create = operationOf("token_new");
const helpOf = (field: keyof typeof terms) => create.input?.[field]?.describe ?? "";

const options = {
  expires: { type: "string", value: "TIME", help: helpOf("expires") },
  rate: { type: "string", value: "RATE", help: helpOf("rate") },
  burst: { type: "string", value: "N", help: helpOf("burst") },
  "bytes-in": { type: "string", value: "SIZE", help: helpOf("bytes_in") },
  "bytes-out": { type: "string", value: "SIZE", help: helpOf("bytes_out") },
  ...socketOption,
} as const satisfies Command["options"];

export const command: Command = {
  name: "token",
  help: "Create, list and revoke tokens",
  arguments: "new NAME SCOPE... | list | revoke NAME | scopes",
  options,
  subcommands: async () => [
    { name: "new", help: create.help, options, completes: [undefined, "scopes"] },
    { name: "list", help: operationOf("tokens").help, options: socketOption },
    { name: "revoke", help: operationOf("token_revoke").help, options: socketOption, completes: "tokens" },
    { name: "scopes", help: operationOf("token_scopes").help, options: socketOption },
  ],
  about: [
    "new prints the secret of the token. The server stores only its digest, so the secret cannot be shown again. revoke takes",
    "a name or an id: open requests of the token are cut, and later ones are refused. scopes lists every form that a scope can",
    "have: app:NAME and * are the server's own, and loaded modules add their own. If no server runs, the command edits the file",
    "tokens.json in its data folder, and says so on the standard error; new and scopes then load the modules of that server.",
  ].join("\n"),
  async run(context) {
    const [verb, ...words] = context.args;
    switch (verb) {
      case "new":
        return made(context, wantedBy(context, words));
      case "revoke":
        return revoked(context, words);
      case "list":
        return listed(context, words);
      case "scopes":
        return listedScopes(context, words);
      default:
        throw new UsageError("token takes new, list, revoke or scopes, such as modhost token new ci rpc:add");
    }
  },
};

function wantedBy({ options }: CommandContext, [name, ...given]: readonly string[]): NewToken {
  const scopes = given.flatMap((word) => word.split(",")).filter((scope) => scope !== "");
  if (name === undefined || scopes.length === 0)
    throw new UsageError("token new needs a name and scopes, such as modhost token new ci rpc:add rpc:pin:read");
  const limits = Object.entries(terms).flatMap(([field, option]) => {
    const value = options[option];
    if (value === undefined) return [];
    if (field === "burst" && !/^\d+$/.test(String(value))) throw new UsageError(`--burst takes a number, not ${value}`);
    return [[field, field === "burst" ? Number(value) : value]];
  });
  return { name, scopes, ...Object.fromEntries(limits) };
}

async function made(context: CommandContext, wanted: NewToken): Promise<number> {
  const created = await tokensFor(context, (tokens) => tokens.create(wanted));
  context.output.show(created, () =>
    [created.secret, "", detail(created.token), "", "This is the only time that the secret is shown."].join("\n"),
  );
  return 0;
}

async function revoked(context: CommandContext, [name, ...more]: readonly string[]): Promise<number> {
  if (name === undefined || more.length > 0) throw new UsageError("token revoke needs the name or id of one token");
  const token = await tokensFor(context, (tokens) => tokens.revoke(name));
  context.output.show(token, () => `The token ${token.name} (${token.id}) is revoked`);
  return 0;
}

async function listed(context: CommandContext, words: readonly string[]): Promise<number> {
  if (words.length > 0) throw new UsageError("token list takes no arguments");
  const tokens = await tokensFor(context, async (all) => all.list());
  const now = ({ is_expired, expires }: TokenInfo) => (is_expired ? "expired" : (expires ?? "never"));
  context.output.show(tokens, () => {
    if (tokens.length === 0) return "There are no tokens: modhost token new creates one.";
    const rows = tokens.map((token) => [
      ...[token.name, token.id, now(token), token.last_used ?? "never", String(token.requests)],
      [token.scopes.join(" "), ...undeclared(token)].join("  "),
    ]);
    return columns([["NAME", "ID", "EXPIRES", "LAST USED", "REQUESTS", "SCOPES"], ...rows]);
  });
  return 0;
}

/** Returns a note on scopes that no loaded module declares. */
function undeclared({ undeclared_scopes: scopes = [] }: TokenInfo): string[] {
  return scopes.length === 0 ? [] : [`(not declared by a loaded module: ${scopes.join(" ")})`];
}

async function listedScopes(context: CommandContext, words: readonly string[]): Promise<number> {
  if (words.length > 0) throw new UsageError("token scopes takes no arguments");
  const scopes = await throughServer(
    context,
    async (server) => server.scopes(),
    () => withLoadedTokens(context, (tokens) => tokens.scopes()),
  );
  context.output.show(scopes, () => {
    const rows = scopes.map(({ form, module, help }) => [form, module ?? "", help]);
    return columns([["SCOPE", "MODULE", "PERMITS"], ...rows]);
  });
  return 0;
}

function detail({ name, id, scopes, expires, rate, burst, bytes_in, bytes_out }: TokenInfo): string {
  const rows = {
    name,
    id,
    scopes: scopes.join(" "),
    expires,
    rate,
    burst,
    "bytes in": bytes_in,
    "bytes out": bytes_out,
  };
  return columns(
    Object.entries(rows).flatMap(([title, value]) => (value === undefined ? [] : [[title, String(value)]])),
    "  ",
  );
}

/** Changes tokens through the running server, or in the file when no server is running. */
function tokensFor<T>(context: CommandContext, use: (tokens: Changeable) => Promise<T>): Promise<T> {
  return throughServer(context, use, () =>
    withTokenFile(context, (tokens, path) => {
      context.stderr.write(`modhost: no server runs here, so this command uses the file ${path}\n`);
      return use({ ...tokens, list: async () => tokens.list() });
    }),
  );
}

/** Calls the running server. If none is running and no socket is named, calls `otherwise`. */
async function throughServer<T>(
  context: CommandContext,
  use: (tokens: Server) => Promise<T>,
  otherwise: () => Promise<T>,
): Promise<T> {
  const socket = await adminSocket(context, context.options.socket);
  try {
    return await use(through(socket));
  } catch (error) {
    if (!(error instanceof NoServerError) || context.options.socket !== undefined) throw error;
    return otherwise();
  }
}

interface Changeable extends Pick<ServerTokens, "create" | "revoke"> {
  list(): Promise<readonly TokenInfo[]>;
}

interface Server extends Changeable {
  scopes(): Promise<readonly DeclaredTokenScope[]>;
}

function through(socket: string): Server {
  const call = async <T>(name: string, fields: Readonly<Record<string, unknown>> = {}) =>
    (await callOperation<T>(socket, operationOf(name), fields)).value;
  return {
    list: () => call<TokenInfo[]>("tokens"),
    scopes: () => call<DeclaredTokenScope[]>("token_scopes"),
    create: ({ scopes, ...others }) => call<MadeToken>("token_new", { ...others, scopes: scopes.join(",") }),
    revoke: (name) => call<TokenInfo>("token_revoke", { name }),
  };
}
