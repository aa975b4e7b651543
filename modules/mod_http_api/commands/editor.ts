/** Starts the operator's editor, for `config/edit`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { failure } from "modhost/node";
import type { Operator } from "../rpc/operator.ts";

/**
 * Returns a function that opens a file in the editor and resolves when the editor exits.
 *
 * @throws NodeError if the operator has not allowed it, or if $EDITOR is not set /
 */
export function editorOf(operator: Operator, config: string, signal: AbortSignal): (file: string) => Promise<void> {
  const { EDITOR: editor = "" } = process.env;
  if (!operator.mayEdit) {
    throw failure("FEATURE_OFF", {
      reason:
        "config/edit is switched off: set the option api_config_edit and start the host in a terminal with $EDITOR set, " +
        `call \`modhost rpc config edit\` in a terminal of yours, or edit ${config} while the node is stopped`,
    });
  }
  if (editor === "") throw failure("EDITOR_FAILED", { reason: "ENV variable $EDITOR not set" });
  return (file) => runEditor(editor, file, signal);
}

/** The variable may contain arguments, in shell syntax. */
async function runEditor(editor: string, file: string, signal: AbortSignal): Promise<void> {
  const child = spawn("sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit", signal });
  const [code, ended] = await once(child, "exit");
  if (code !== 0)
    throw failure("EDITOR_FAILED", {
      reason: `the editor ended with ${ended ?? `status ${code}`}; nothing was changed`,
    });
}
