/** Finds the server that commands are sent to. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect, isIPv6, type Socket } from "node:net";
import { join, resolve } from "node:path";
import { type CommandContext, connectTo, loadConfig, UsageError } from "../../../../core/cli/index.ts";
import type { Host } from "../../../../core/index.ts";
import { authorizationOf } from "../../authorization_header.ts";
import { openPlainFile } from "./plain_file.ts";

/** The location of a server: an origin, a socket of this machine, or a host in this process. */
export interface Server {
  readonly origin: URL;
  readonly socketPath?: string;
  /** Opens a connection to the server. */
  readonly connect?: () => Socket;
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** Where the address was found; used in messages. */
  readonly source: string;
}

const standard = "/ip4/127.0.0.1/tcp/5280";

type ServerContext = Pick<CommandContext, "configPath" | "cwd" | "env" | "stderr">;

/**
 * Returns the server that `--api` names. Otherwise it reads the address from the file `api` of the
 * repo, which is the repo of the named config file, of $IPFS_PATH, or of the config file found
 * here. If none of these names a repo and ./data has none, it uses the default address and says so
 * on stderr.
 *
 * @throws UsageError for an invalid address, Error if no server runs on the repo /
 */
export async function findServer(context: ServerContext, { api, token, apiAuth }: ServerOptions): Promise<Server> {
  const found: AnnouncedServer = api === undefined ? await announcedServer(context) : { address: api, source: "--api" };
  const server = parseServer(found.address, found.source);
  if (apiAuth !== undefined) {
    const authorization = authorizationOf(await secretOf(apiAuth, context.cwd));
    if (authorization !== undefined) return { ...server, authorization };
    throw new UsageError("--api-auth takes bearer:TOKEN, basic:USER:PASSWORD or basic:BASE64-OF-BOTH");
  }
  const secret = token === undefined ? found.token : await secretOf(token, context.cwd);
  return secret === undefined ? server : { ...server, authorization: `Bearer ${secret}` };
}

/** The options that name a server and its secret. */
export interface ServerOptions {
  readonly api: string | undefined;
  readonly token: string | undefined;
  readonly apiAuth: string | undefined;
}

/** Returns a host in this process as a server that needs no port. */
export function serverInProcess(host: Host): Server {
  return { origin: new URL("http://localhost"), source: "this process", connect: () => connectTo(host) };
}

/** The address that a server has published in its repo. */
export interface AnnouncedServer {
  readonly address: string;
  readonly source: string;
  /** The token for the owner of the repo; undefined if the server requires none. */
  readonly token?: string | undefined;
}

/**
 * Reads the files `api` and `api-token` of a repo. Resolves to undefined if there is no address.
 */
export async function readApiFiles(repo: string): Promise<AnnouncedServer | undefined> {
  const source = join(repo, "api");
  const [address, token] = await Promise.all([source, join(repo, "api-token")].map(lineOf));
  return address === undefined ? undefined : { address, source, token };
}

/**
 * Resolves to undefined for a file that is missing, belongs to another user, or is not a regular
 * file: opening a pipe would wait forever.
 */
async function lineOf(file: string): Promise<string | undefined> {
  try {
    await using opened = await openPlainFile(file, file);
    return (await opened.readFile("utf8")).trim();
  } catch {
    return undefined;
  }
}

/** Returns whether a connection to the server can be opened. */
export function isReachable({ origin, socketPath }: Server): Promise<boolean> {
  const { hostname, port, protocol } = origin;
  const host = hostname.replace(/^\[|\]$/g, "");
  const target = { host, port: Number(port || (protocol === "https:" ? 443 : 80)) };
  return new Promise((resolve) => {
    const socket = connect(socketPath === undefined ? target : { path: socketPath });
    const finish = (isReachable: boolean) => () => {
      socket.destroy();
      resolve(isReachable);
    };
    socket.once("connect", finish(true)).once("error", finish(false));
  });
}

async function announcedServer(context: ServerContext): Promise<AnnouncedServer> {
  const { repo, by } = await repoOf(context);
  const found = await readApiFiles(repo);
  if (found !== undefined) return found;
  if (by !== undefined || existsSync(repo)) {
    const named = by ?? "the default path";
    throw new Error(
      `No server announces its API in the repo ${repo} (${named}): start one with the module http_api, or name a server with --api`,
    );
  }
  context.stderr.write(`modhost: there is no repo ${repo}, so the command is sent to the server at ${standard}\n`);
  return { address: standard, source: "the default address" };
}

/**
 * Returns the path of the repo. `by` says which setting names it; undefined for the default path.
 */
async function repoOf({ configPath, cwd, env }: ServerContext): Promise<{ repo: string; by: string | undefined }> {
  const { IPFS_PATH = "" } = env;
  if (configPath === undefined && IPFS_PATH !== "") return { repo: resolve(cwd, IPFS_PATH), by: "by $IPFS_PATH" };
  const config = await loadConfig({ path: configPath, cwd, env });
  const named = config.raw("node_repo");
  const repo =
    typeof named === "string" ? resolve(config.directory, named) : join(String(config.value("data_path")), "repo");
  const variable = ["MODHOST_NODE_REPO", "MODHOST_DATA_PATH"].find((name) => env[name] !== undefined);
  return { repo, by: variable === undefined ? config.file && `by ${config.file}` : `by $${variable}` };
}

/** Resolves `@FILE` to the contents of the file, since other users can see the command line. */
async function secretOf(token: string, cwd: string): Promise<string> {
  return token.startsWith("@") ? (await readFile(resolve(cwd, token.slice(1)), "utf8")).trim() : token;
}

/** Parses a URL, `HOST:PORT` or a multiaddress. @throws UsageError */
export function parseServer(address: string, source: string): Server {
  const isHostAndPort = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i.test(address);
  const server = address.startsWith("/")
    ? ofMultiaddress(address)
    : ofUrl(isHostAndPort ? `http://${address}` : address);
  if (server === undefined) {
    throw new UsageError(
      `${source} is not the address of a server: ${address} is neither a URL such as http://127.0.0.1:5280, nor HOST:PORT, nor a multiaddress such as ${standard}`,
    );
  }
  return { ...server, source };
}

function ofUrl(text: string): Omit<Server, "source"> | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  const { username, password } = url;
  const origin = new URL(url.origin);
  if (username === "" && password === "") return { origin };
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { origin, authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
}

function ofMultiaddress(text: string): Omit<Server, "source"> | undefined {
  const [, path] = /^\/unix(\/.+)$/.exec(text) ?? [];
  if (path !== undefined) return { origin: new URL("http://localhost"), socketPath: path };
  const [, kind, host = "", port, rest = ""] =
    /^\/(ip4|ip6|dns|dns4|dns6)\/([^/]+)\/tcp\/(\d+)((?:\/(?:http|https|tls))*)\/?$/.exec(text) ?? [];
  if (kind === undefined || (kind === "ip6" && !isIPv6(host))) return undefined;
  const scheme = /https|tls/.test(rest) ? "https" : "http";
  const origin = `${scheme}://${kind === "ip6" ? `[${host}]` : host}:${port}`;
  return URL.canParse(origin) ? { origin: new URL(origin) } : undefined;
}
