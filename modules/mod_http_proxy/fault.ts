/** Why an upstream gave no answer. */

/** `connect`: it was not reached; `timeout`: it was too late; `lost`: the connection broke; `bad answer`: what came is no HTTP. */
export type FaultReason = "connect" | "timeout" | "lost" | "bad_answer";

export class UpstreamFault extends Error {
  readonly reason: FaultReason;
  /** What the client gets. */
  readonly status: 502 | 504;

  constructor(reason: FaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
    this.status = reason === "timeout" ? 504 : 502;
  }
}

/** What went wrong on a connection, which was there or not. */
export function faultOf(error: NodeJS.ErrnoException, isConnected: boolean): UpstreamFault {
  if (error instanceof UpstreamFault) return error;
  const { code, message } = error;
  const text = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  if (!isConnected) return new UpstreamFault("connect", text || String(code), error);
  if (code?.startsWith("HPE_") === true)
    return new UpstreamFault("bad_answer", `what it answered is no HTTP: ${text}`, error);
  return new UpstreamFault("lost", text, error);
}
