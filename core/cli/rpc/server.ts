/** Which server the commands are sent to. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect, isIPv6, type Socket } from "node:net";
import { join, resolve } from "node:path";
import { loadConfig } from "../../config/index.ts";
import type { Host } from "../../host.ts";
import { openConnection } from "../../testing/inject.ts";
import { authorizationOf } from "../../util/tokens.ts";
import { type CommandContext, UsageError } from "../command.ts";

/** Where a server listens: an origin, a socket of this machine, or within this process. */
export interface Server {
  readonly origin: URL;
  readonly socketPath?: string;
  /** Opens a connection to it. */
  readonly connect?: () => Socket;
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** Where the address was found, for messages. */
  readonly source: string;
}

const standard = "/ip4/127.0.0.1/tcp/5280";

type Place = Pick<CommandContext, "configPath" | "cwd" | "env" | "stderr">;

/**
 * The server of `--api`; else the one whose address stands in the file `api` of the repo: of the config file that is
 * named, of $IPFS_PATH, or of the configuration that is found. Where none of them tells a repo and none is in ./data,
 * the address that a server has when nothing is configured, which the standard error tells.
 * @throws UsageError for an address that is none, Error when no server runs on the repo
 */
export async function findServer(context: Place, { api, token, apiAuth }: ServerOptions): Promise<Server> {
  const found: Announced = api === undefined ? await announced(context) : { address: api, source: "--api" };
  const server = serverOf(found.address, found.source);
  if (apiAuth !== undefined) {
    const authorization = authorizationOf(await secretOf(apiAuth, context.cwd));
    if (authorization !== undefined) return { ...server, authorization };
    throw new UsageError("--api-auth takes bearer:TOKEN, basic:USER:PASSWORD or basic:BASE64-OF-BOTH");
  }
  const secret = token === undefined ? found.token : await secretOf(token, context.cwd);
  return secret === undefined ? server : { ...server, authorization: `Bearer ${secret}` };
}

/** What the command line says of the server. */
export interface ServerOptions {
  readonly api: string | undefined;
  readonly token: string | undefined;
  readonly apiAuth: string | undefined;
}

/** A host in this process, through no port. */
export function serverWithin(host: Host): Server {
  const open = () => openConnection((socket) => host.connect("http", socket));
  return { origin: new URL("http://localhost"), source: "this process", connect: open };
}

/** Where a server says that it is. */
export interface Announced {
  readonly address: string;
  readonly source: string;
  /** What it takes calls with that come from the owner of the repo; undefined if it asks for none. */
  readonly token?: string | undefined;
}

/** What the files `api` and `api-token` of a repo say; undefined when there is no address. */
export async function findApi(repo: string): Promise<Announced | undefined> {
  const source = join(repo, "api");
  const [address, token] = await Promise.all([source, join(repo, "api-token")].map(lineOf));
  return address === undefined ? undefined : { address, source, token };
}

/** Undefined for a file that is not there, or that others own. */
async function lineOf(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch {
    return undefined;
  }
}

/** Somebody listens there. */
export function isAnswering({ origin, socketPath }: Server): Promise<boolean> {
  const { hostname, port, protocol } = origin;
  const host = hostname.replace(/^\[|\]$/g, "");
  const place = { host, port: Number(port || (protocol === "https:" ? 443 : 80)) };
  return new Promise((resolve) => {
    const socket = connect(socketPath === undefined ? place : { path: socketPath });
    const told = (answers: boolean) => () => {
      socket.destroy();
      resolve(answers);
    };
    socket.once("connect", told(true)).once("error", told(false));
  });
}

async function announced(context: Place): Promise<Announced> {
  const { repo, by } = await repoOf(context);
  const found = await findApi(repo);
  if (found !== undefined) return found;
  if (by !== undefined || existsSync(repo)) {
    const named = by ?? "where it is when nothing names one";
    throw new Error(
      `No server has the API of the repo ${repo} (${named}): start one with the module http_api, or name a server by --api`,
    );
  }
  context.stderr.write(`modhost: there is no repo ${repo}: this goes to the server at ${standard}\n`);
  return { address: standard, source: "the default address" };
}

/** `by`: what names it; undefined when nothing does. */
async function repoOf({ configPath, cwd, env }: Place): Promise<{ repo: string; by: string | undefined }> {
  const { IPFS_PATH = "" } = env;
  if (configPath === undefined && IPFS_PATH !== "") return { repo: resolve(cwd, IPFS_PATH), by: "by $IPFS_PATH" };
  const config = await loadConfig({ path: configPath, cwd, env });
  const named = config.raw("node_repo");
  const repo =
    typeof named === "string" ? resolve(config.directory, named) : join(String(config.value("data_path")), "repo");
  const variable = ["MODHOST_NODE_REPO", "MODHOST_DATA_PATH"].find((name) => env[name] !== undefined);
  return { repo, by: variable === undefined ? config.file && `by ${config.file}` : `by $${variable}` };
}

/** `@FILE` stands for what the file holds: what is on the command line, others can see. */
async function secretOf(token: string, cwd: string): Promise<string> {
  return token.startsWith("@") ? (await readFile(resolve(cwd, token.slice(1)), "utf8")).trim() : token;
}

/** A URL, `HOST:PORT` or a multiaddress. @throws UsageError */
export function serverOf(address: string, source: string): Server {
  const isPlace = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i.test(address);
  const server = address.startsWith("/") ? ofMultiaddress(address) : ofUrl(isPlace ? `http://${address}` : address);
  if (server === undefined) {
    throw new UsageError(
      `${source} has no address of a server: ${address} is neither a URL such as http://127.0.0.1:5280, nor HOST:PORT, nor a multiaddress such as ${standard}`,
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
