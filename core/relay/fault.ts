/** The reasons why a server, process or worker has sent no response. */

/**
 * `connect`: it was not reached; `timeout`: it took too long; `lost`: the connection broke;
 * `bad_answer`: it sent something that is not a response of HTTP.
 */
export type FaultReason = "connect" | "timeout" | "lost" | "bad_answer";

export class RelayFault extends Error {
  readonly reason: FaultReason;
  /** The status of the response to the client. */
  readonly status: 502 | 504;

  constructor(reason: FaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
    this.status = reason === "timeout" ? 504 : 502;
  }
}

/** Classifies the error of a connection, which was open or not. */
export function faultOf(error: NodeJS.ErrnoException, isConnected: boolean): RelayFault {
  if (error instanceof RelayFault) return error;
  const { code, message } = error;
  const text = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  if (!isConnected) return new RelayFault("connect", text || String(code), error);
  if (code?.startsWith("HPE_") === true)
    return new RelayFault("bad_answer", `its response is not HTTP: ${text}`, error);
  return new RelayFault("lost", text, error);
}
