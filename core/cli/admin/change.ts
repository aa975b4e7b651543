/** Shows the result of a change in the output of a command. */
import { planLines } from "../../operations/plan_text.ts";
import type { Change, ConfigPlan } from "../../types.ts";
import type { CommandContext } from "../command.ts";
import type { Output } from "../output.ts";
import { NO_SERVER, NoServerError } from "./client.ts";

/** Shows a change; returns the exit code: 0 done, 1 refused or failed. */
export function showChange({ output }: Pick<CommandContext, "output">, change: Change): number {
  output.show(change, () => changeText(output, change));
  return change.result === "done" ? 0 : 1;
}

/** Returns the text of a change for people. */
export function changeText(output: Output, change: Change): string {
  const verdict = `${change.what}: ${change.result}`;
  const lines = planText(change.plan);
  if (change.result === "done") {
    const warnings = (change.warnings ?? []).map((text) => `  ${output.paint("yellow", "Warning:")} ${text}.`);
    return [`${output.paint("green", verdict)}${took(change)}`, ...warnings, ...lines].join("\n");
  }
  return [output.paint("red", verdict), ...errorLines(change), ...lines].join("\n");
}

/** Returns one line for each difference; empty for a change that has no plan. */
export function planText(plan: ConfigPlan | undefined): string[] {
  if (plan === undefined) return [];
  return plan.isEmpty ? ["  Nothing differs."] : planLines(plan).map((line) => `  ${line}`);
}

function took({ steps }: Change): string {
  const ms = steps.at(-1)?.ms;
  return ms === undefined ? "" : ` (${ms} ms)`;
}

/** Returns the reason, and the source line that it names. */
export function errorLines({ error, result }: Change): string[] {
  if (error === undefined) return [];
  const { message, place: position } = error;
  return [
    `  ${message}`,
    ...(position === undefined ? [] : [`  ${position.file}:${position.line}`]),
    ...(position?.text === undefined ? [] : [`    ${position.text.trim()}`]),
    ...(result === "failed" ? ["  The previous state stays in force."] : []),
  ];
}

/** Runs a command that needs a server. Without one it prints the reason, and the exit code is 3. */
export async function withServer(context: Pick<CommandContext, "stderr">, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof NoServerError)) throw error;
    context.stderr.write(`modhost: ${error.message}\n`);
    return NO_SERVER;
  }
}
