/** Explains why a port cannot be opened, and names the option to change. */
import { variableOf } from "../config/index.ts";
import type { ListeningPort } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { addressErrors, codeOf } from "./listen.ts";
import { areInTheWay } from "./refused.ts";

export function portFailure(
  { service: name, address, port }: { readonly service: string; readonly address: string; readonly port: number },
  error: unknown,
  listening: readonly ListeningPort[],
  optionOf: (service: string) => string,
): ModhostError {
  const option = optionOf(name);
  const example = `${variableOf(option)}=${port + (port < 64_000 ? 1000 : -1000)}`;
  const details = { port, address, option, example, reason: reasonOf(error) };
  const code = codeOf(error);
  const own = listening.find((open) => open.port === port && areInTheWay(open.address, address));
  if (code === "EADDRINUSE" && own === undefined) return new ModhostError("PORT_TAKEN", details, { cause: error });
  if (code === "EACCES") return new ModhostError("PORT_FORBIDDEN", details, { cause: error });
  const isOther = own !== undefined && own.service !== name;
  const other = isOther ? optionOf(own.service) : `${own?.address} in ${name}_interfaces`;
  const reason = code === "EADDRINUSE" && own !== undefined ? `${other} has it too` : details.reason;
  // If this machine does not have the address, another port would not help.
  const wrong = addressErrors.has(code) || (own !== undefined && !isOther) ? `${name}_interfaces` : option;
  return new ModhostError("PORT_UNAVAILABLE", { ...details, option: wrong, reason }, { cause: error });
}
