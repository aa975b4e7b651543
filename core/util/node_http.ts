/**
 * What the host uses of `node:http`. An import of that module reads all its fields, and with one of them, the browser's
 * WebSocket, Node loads its whole fetch client: 20 ms of the start, and 6 MiB.
 */
import type * as http from "node:http";

export const { Agent, createServer, IncomingMessage, METHODS, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule("node:http");

export type Agent = http.Agent;
export type ClientRequest = http.ClientRequest;
export type IncomingMessage = http.IncomingMessage;
export type ServerResponse = http.ServerResponse;
