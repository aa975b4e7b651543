/** How many processes `modhost run` is to serve with. */
import { availableParallelism } from "node:os";
import { readConfig } from "../host/reading.ts";
import type { HostOptions } from "../host.ts";
import { UsageError } from "./command.ts";

/** The option --workers as the option of the configuration has it: 0 for as many as there are processors. */
export function workersOption(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (value === "auto") return "0";
  if (/^[1-9]\d{0,2}$/.test(String(value))) return String(value);
  throw new UsageError(`--workers takes a number of processes, or auto, not ${value}`);
}

/** How many processes are to serve. What is wrong with the configuration the host tells, with all else of it. */
export async function workersWanted(options: HostOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const config = await readConfig({ ...options, env }).catch(() => undefined);
  let wanted = 1;
  try {
    wanted = Number(config?.value("workers") ?? 1);
  } catch {} // It is no number.
  return wanted === 0 ? availableParallelism() : wanted;
}
