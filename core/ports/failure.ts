/** Why a port cannot be opened, in words that name the option to change. */
import { variableOf } from "../config/index.ts";
import type { ListeningPort } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { addressErrors, codeOf } from "./listen.ts";

export function portFailure(
  { service: name, address, port }: { readonly service: string; readonly address: string; readonly port: number },
  error: unknown,
  listening: readonly ListeningPort[],
): ModhostError {
  const option = `${name}_ports`;
  const example = `${variableOf(option)}=${port + (port < 64_000 ? 1000 : -1000)}`;
  const details = { port, address, option, example, reason: reasonOf(error) };
  const code = codeOf(error);
  const own = listening.find((open) => open.port === port && open.service !== name);
  if (code === "EADDRINUSE" && own === undefined) return new ModhostError("PORT_TAKEN", details, { cause: error });
  if (code === "EACCES") return new ModhostError("PORT_FORBIDDEN", details, { cause: error });
  const reason = own === undefined ? details.reason : `${own.service}_ports has it too`;
  // The port is not the trouble of an address that this machine does not have.
  const wrong = addressErrors.has(code) ? `${name}_interfaces` : option;
  return new ModhostError("PORT_UNAVAILABLE", { ...details, option: wrong, reason }, { cause: error });
}
