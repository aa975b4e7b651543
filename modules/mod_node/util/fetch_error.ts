/** Texts for HTTP requests that got no answer, as the reference has them. */
import { getSystemErrorMessage } from "node:util";

interface NetworkError extends Error {
  readonly code?: string;
  readonly errno?: number;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

/** `error` is what `fetch` rejected with. */
export function fetchErrorText(error: Error): string {
  const cause = (error.cause instanceof Error ? error.cause : error) as NetworkError;
  const { code, errno, syscall, address, port, hostname } = cause;
  if (code === "ENOTFOUND") return `dial tcp: lookup ${hostname}: no such host`;
  if (syscall === "connect" && errno !== undefined && address !== undefined) {
    const place = address.includes(":") ? `[${address}]` : address;
    return `dial tcp ${place}:${port}: connect: ${getSystemErrorMessage(errno)}`;
  }
  // A connection that ended without an answer.
  if (code === "UND_ERR_SOCKET" || code === "ECONNRESET") return "EOF";
  return cause.message;
}
