/** Checks and parses an entry of the option for the proxy. */
import { readFileSync } from "node:fs";
import { foldedName, readHeaders } from "../../core/http/index.ts";
import { invalidOption, reasonOf } from "../../core/index.ts";
import type { ProxyEntry } from "./options.ts";

/** The address that an upstream listens at. */
export interface UpstreamAddress {
  /** The address as it is in the option. Logs, metrics and the Admin API use it as the name. */
  readonly name: string;
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
  /** The path of a Unix socket, in place of name and port. */
  readonly socketPath: string | undefined;
  /** Prefix of all paths, without a final slash. */
  readonly basePath: string;
  /** The Host header, if it is the upstream's own. */
  readonly authority: string;
}

export interface Settings extends Omit<ProxyEntry, "upstreams" | "request_headers" | "response_headers"> {
  readonly addresses: readonly UpstreamAddress[];
  readonly ca: string | undefined;
  /** Configured headers by folded name. */
  readonly requestHeaders: ReadonlyMap<string, Header>;
  readonly responseHeaders: ReadonlyMap<string, Header>;
  readonly isHealthy: (status: number) => boolean;
}

export interface Header {
  readonly name: string;
  /** An empty value removes the header. */
  readonly value: string;
}

/** Fields that the proxy writes itself, or that have an option of their own. */
const ownFields: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** @throws {ModhostError} OPTION_INVALID */
export function readSettings(entry: ProxyEntry, option: string): Settings {
  const { upstreams, request_headers, response_headers, path, host, tls_ca, health_path, health_status } = entry;
  const check = (field: "upstreams" | "path" | "host" | "health_path", isValid: boolean, allowed: string) => {
    if (!isValid) throw invalidOption(`${option}.${field}`, entry[field], allowed);
  };
  check("upstreams", upstreams.length > 0, "it must name at least one");
  check("upstreams", new Set(upstreams).size === upstreams.length, "it must name each of them only once");
  const isPath = path === "strip" || path === "keep" || /^\/[^?#\s]*$/.test(path);
  check("path", isPath, "it must be strip, keep, or a path that begins with a slash");
  check("host", /^[\w.:[\]-]+$/.test(host), "it must be client, upstream, or the name of a host");
  const isHealthPath = health_path === "" || /^\/[\x21\x22\x24-\x7e]*$/.test(health_path);
  check("health_path", isHealthPath, "it must be a path that begins with a slash, without #");
  return {
    ...entry,
    addresses: upstreams.map((upstream) => addressOf(upstream, `${option}.upstreams`)),
    ca: tls_ca === undefined ? undefined : readCa(tls_ca, `${option}.tls_ca`),
    requestHeaders: headerMap(request_headers, `${option}.request_headers`),
    responseHeaders: headerMap(response_headers, `${option}.response_headers`),
    isHealthy: statusesOf(health_status, `${option}.health_status`),
  };
}

function addressOf(name: string, option: string): UpstreamAddress {
  if (name.startsWith("unix:")) {
    const socketPath = name.slice("unix:".length);
    if (!socketPath.startsWith("/"))
      throw invalidOption(option, name, "the path of a Unix socket must begin with a slash");
    return { name, secure: false, hostname: "localhost", port: 80, socketPath, basePath: "", authority: "localhost" };
  }
  const url = URL.canParse(name) ? new URL(name) : undefined;
  const allowed = "each must be a URL such as http://127.0.0.1:3000, or unix:/PATH/OF/A/SOCKET";
  if (url !== undefined && url.username + url.password !== "")
    throw invalidOption(
      option,
      `${url.protocol}//***@${url.host}`,
      "a URL may contain no password: set the header Authorization by request_headers",
    );
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw invalidOption(option, name, allowed);
  if (url.search !== "" || url.hash !== "")
    throw invalidOption(option, name, "a URL may have neither query nor fragment");
  const secure = url.protocol === "https:";
  return {
    name,
    secure,
    hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    socketPath: undefined,
    basePath: url.pathname.replace(/\/+$/, ""),
    authority: url.host,
  };
}

function readCa(path: string, option: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw invalidOption(option, path, `it cannot be read: ${reasonOf(error)}`);
  }
}

function headerMap(headers: Readonly<Record<string, unknown>>, option: string): Map<string, Header> {
  const map = new Map<string, Header>();
  for (const [name, value] of readHeaders(headers, option)) {
    const key = foldedName(name);
    if (ownFields.has(key)) throw invalidOption(`${option}.${name}`, value, "the proxy writes this header itself");
    const other = map.get(key)?.name;
    if (other !== undefined)
      throw invalidOption(`${option}.${name}`, value, `many servers treat it as ${other}: set only one of them`);
    map.set(key, { name, value });
  }
  return map;
}

/** Parses a text such as `200, 300-399`. */
function statusesOf(text: string, option: string): (status: number) => boolean {
  const ranges = text.split(",").map((part) => {
    const [, from, to = from] = /^\s*(\d{3})(?:-(\d{3}))?\s*$/.exec(part) ?? [];
    if (from === undefined) throw invalidOption(option, text, "it must be statuses such as 200, 204 or 200-299");
    return [Number(from), Number(to)] as const;
  });
  return (status) => ranges.some(([from, to]) => status >= from && status <= to);
}
