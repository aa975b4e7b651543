/**
 * Starts a server of Node's for a request handler: plain HTTP, or, by BENCH_SECURE, TLS or HTTP/2
 * with the certificate of BENCH_CERTIFICATE.
 */
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { report } from "./report.ts";

/** Longer than any round, so that connections stay open between turns. */
export const KEEP_ALIVE_MS = 600_000;

const { BENCH_SECURE: secure, BENCH_CERTIFICATE: folder = "" } = process.env;

/** Undefined without TLS. */
export const certificate =
  secure === undefined
    ? undefined
    : { cert: readFileSync(join(folder, "certificate.pem")), key: readFileSync(join(folder, "key.pem")) };

export const speaksHttp2 = secure === "h2";

export function listen(handler: RequestListener): Server {
  const server = serverOf(handler);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(0, "127.0.0.1", () => report((server.address() as AddressInfo).port));
  return server;
}

function serverOf(handler: RequestListener): Server {
  if (certificate === undefined) return createServer(handler);
  if (!speaksHttp2) return createTlsServer(certificate, handler);
  return createSecureServer({ ...certificate, allowHTTP1: true }, handler as never) as unknown as Server;
}
