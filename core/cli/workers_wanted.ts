/** Determines how many processes `modhost run` serves with. */
import { availableParallelism } from "node:os";
import { readConfig } from "../host/reading.ts";
import type { HostOptions } from "../host.ts";
import { UsageError } from "./command.ts";

/**
 * Returns the option --workers in the form of the configuration: 0 for as many as there are
 * processors.
 */
export function workersOption(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (value === "auto") return "0";
  if (/^[1-9]\d{0,2}$/.test(String(value))) return String(value);
  throw new UsageError(`--workers takes a number of processes, or auto, not ${value}`);
}

/**
 * Returns the number of processes. Problems of the configuration are ignored here, because the host
 * reports all of them.
 */
export async function workersWanted(options: HostOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const config = await readConfig({ ...options, env }).catch(() => undefined);
  let wanted = 1;
  try {
    wanted = Number(config?.value("workers") ?? 1);
  } catch {} // The value is not a number.
  return wanted === 0 ? availableParallelism() : wanted;
}
