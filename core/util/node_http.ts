/**
 * Re-exports the parts of `node:http` that the host uses. An import of that module would read all
 * its fields. The field for the browser's WebSocket makes Node load its whole fetch client, which
 * costs 20 ms of the start and 6 MiB.
 */
import type * as http from "node:http";

export const {
  Agent,
  createServer,
  IncomingMessage,
  METHODS,
  request,
  ServerResponse,
  STATUS_CODES,
  validateHeaderValue,
} = process.getBuiltinModule("node:http");

export type Agent = http.Agent;
export type ClientRequest = http.ClientRequest;
export type IncomingMessage = http.IncomingMessage;
export type ServerResponse = http.ServerResponse;
