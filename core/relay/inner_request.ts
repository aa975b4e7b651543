/**
 * Requests between parts of one server, over a socket of the system. The sender adds a header field
 * with facts about the client, and a token that proves who sends it. The receiver removes the
 * field, and its handlers see the request as the client sent it.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { basename, join } from "node:path";
import type { TLSSocket } from "node:tls";
import { type Agent, type ClientRequest, request as openRequest } from "../util/node_http.ts";
import type { NodeRequest } from "../util/node_messages.ts";
import { connectionFields, fieldName, hasBody } from "./fields.ts";

/** Header fields between parts of one server. Clients can neither set nor see them. */
export const PEER_FIELD = "x-modhost-peer";
export const PASSED_FIELD = "x-modhost-passed";
export const REFUSED_FIELD = "x-modhost-refused";
export const INNER_FIELDS: ReadonlySet<string> = new Set([PEER_FIELD, PASSED_FIELD, REFUSED_FIELD]);

export const peerNames = ["remoteAddress", "remotePort", "localAddress", "localPort", "encrypted"] as const;

/** The two ends of the client's connection, as its socket shows them. */
export type Peer = Partial<Pick<TLSSocket, (typeof peerNames)[number]>>;

/** The facts that the receiver gets about a request: JSON in PEER_FIELD. */
export interface RequestFacts {
  readonly token: string;
  readonly peer: Peer;
  /** Whether the request came as HTTP/1.0, which needs no `Host`. */
  readonly isOld?: boolean;
}

/** The socket at which a part of the server takes requests, and the token that each one carries. */
export interface InnerAddress {
  readonly path: string;
  readonly token: string;
}

export const randomToken = (): string => randomBytes(16).toString("hex");

/**
 * Returns the path of a socket in a new folder, or the name of a pipe where sockets of the system
 * have no paths.
 */
export function innerPath(folder: string, name: string): string {
  return process.platform === "win32" ? `\\\\.\\pipe\\${basename(folder)}-${name}` : join(folder, name);
}

export interface InnerTarget extends InnerAddress {
  /** False for a connection of its own. */
  readonly agent: Agent | false;
}

export interface InnerRequestOptions {
  /** The target of the request line. Default: as the client sent it. */
  readonly url?: string;
  /** The Host header of a request that has none. */
  readonly host: string | undefined;
  /** The protocol that the client wants to switch to. */
  readonly upgrade?: string | undefined;
  /** Whether the receiver decides when the client may send its body. */
  readonly passesExpect: boolean;
  /** Fields in lower case that are left out. */
  readonly withheld?: ReadonlySet<string> | undefined;
  /** Further facts for the receiver. */
  readonly facts: object;
}

/** Opens a request to another part of this server. Its body is still to be sent. */
export function openInnerRequest(
  request: NodeRequest,
  target: InnerTarget,
  options: InnerRequestOptions,
): ClientRequest {
  const { url = request.url, upgrade, facts } = options;
  const headers = innerFields(request, options);
  headers.push(PEER_FIELD, asciiJson({ token: target.token, peer: peerOf(request.socket), ...facts }));
  if (upgrade !== undefined) headers.push("Connection", "Upgrade", "Upgrade", upgrade);
  return openRequest({
    socketPath: target.path,
    agent: upgrade === undefined ? target.agent : false,
    method: request.method,
    path: url,
    headers: headers as never,
    setHost: false,
  });
}

/**
 * Returns the header fields of a request to another part of this server, as a flat list: those of
 * the client that do not belong to its connection.
 */
export function innerFields(
  request: NodeRequest,
  { host, passesExpect, withheld }: Pick<InnerRequestOptions, "host" | "passesExpect" | "withheld">,
): string[] {
  const { rawHeaders } = request;
  const headers: string[] = [];
  let isFramed = false;
  let hasHost = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const { lower } = fieldName(name);
    if (name.startsWith(":") || INNER_FIELDS.has(lower) || withheld?.has(lower) === true) continue;
    if (connectionFields.has(lower) && !(lower === "expect" && passesExpect)) continue;
    if (lower === "content-length" || lower === "transfer-encoding") isFramed = true;
    if (lower === "host") hasHost = true;
    headers.push(name, rawHeaders[at + 1] as string);
  }
  if (!hasHost && host !== undefined) headers.push("Host", host);
  if (!isFramed && hasBody(request)) headers.push("Transfer-Encoding", "chunked");
  return headers;
}

/**
 * Reads and removes the facts about a request that has arrived, and makes its connection look like
 * that of the client. Closes the connection of a sender without the token, and returns undefined.
 */
export function admit<F extends RequestFacts>(
  request: { rawHeaders: string[]; headers: Record<string, unknown>; socket: Socket; httpVersion: string },
  token: string,
): Partial<F> | undefined {
  const { rawHeaders, headers, socket } = request;
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name === PEER_FIELD);
  const facts: Partial<F> = at < 0 ? {} : JSON.parse(rawHeaders[at + 1] as string);
  if (at >= 0) rawHeaders.splice(at, 2);
  delete headers[PEER_FIELD];
  if (facts.token !== token) {
    socket.destroy();
    return undefined;
  }
  if (facts.isOld === true) request.httpVersion = "1.0";
  if (facts.peer !== undefined) disguise(socket, facts.peer);
  return facts;
}

/** Returns JSON that a header can carry. */
export function asciiJson(value: object): string {
  return JSON.stringify(value).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const peers = new WeakMap<Socket, Peer>();

const peerTexts = new WeakMap<Socket, string>();

/**
 * Returns the two ends of a client's connection as JSON, with a number at random: a later
 * connection between the same ends has another text.
 */
export function peerTextOf(socket: Socket): string {
  let text = peerTexts.get(socket);
  if (text === undefined) {
    text = asciiJson({ ...peerOf(socket), connection: Math.random() });
    peerTexts.set(socket, text);
  }
  return text;
}

/** Returns the two ends of a client's connection, which never change. */
function peerOf(socket: Socket): Peer {
  let peer = peers.get(socket);
  if (peer === undefined) {
    peer = Object.fromEntries(peerNames.map((name) => [name, (socket as TLSSocket)[name]]));
    peers.set(socket, peer);
  }
  return peer;
}

/** The client whose request a connection carries at the moment. */
const shown = new WeakMap<Socket, Peer>();

function disguise(socket: Socket, peer: Peer): void {
  const isNew = !shown.has(socket);
  shown.set(socket, peer);
  if (!isNew) return;
  for (const name of peerNames) {
    Object.defineProperty(socket, name, { get: () => shown.get(socket)?.[name], configurable: true });
  }
}
