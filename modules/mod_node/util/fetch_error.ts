/** Error texts for HTTP requests that got no response, in the words of go-ipfs. */
import { getSystemErrorMessage } from "node:util";

interface NetworkError extends Error {
  readonly code?: string;
  readonly errno?: number;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

/** Describes the error that `fetch` rejected with. */
export function fetchErrorText(error: Error): string {
  const cause = (error.cause instanceof Error ? error.cause : error) as NetworkError;
  const { code, errno, syscall, address, port, hostname } = cause;
  if (code === "ENOTFOUND") return `dial tcp: lookup ${hostname}: no such host`;
  if (syscall === "connect" && errno !== undefined && address !== undefined) {
    const host = address.includes(":") ? `[${address}]` : address;
    return `dial tcp ${host}:${port}: connect: ${getSystemErrorMessage(errno)}`;
  }
  // The connection ended without a response.
  if (code === "UND_ERR_SOCKET" || code === "ECONNRESET") return "EOF";
  return cause.message;
}
