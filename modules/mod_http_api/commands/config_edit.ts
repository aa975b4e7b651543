/** The configuration in the editor of whoever runs the host. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ConfigFile } from "../../mod_node/index.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import type { Operator } from "../rpc/operator.ts";

/** @throws NodeError where the operator has not allowed it, or the editor failed */
export async function editConfig(config: ConfigFile, operator: Operator, signal: AbortSignal): Promise<undefined> {
  const { EDITOR: editor = "" } = process.env;
  if (!operator.mayEdit) {
    throw new NodeError(
      "config/edit is switched off: set the option api_config_edit and start the host in a terminal with $EDITOR set, " +
        `call \`modhost rpc config edit\` in a terminal of yours, or edit ${config.path} while the node is stopped`,
    );
  }
  if (editor === "") throw new NodeError("ENV variable $EDITOR not set");
  await config.edit((file) => runEditor(editor, file, signal));
}

/** The variable may hold arguments, as shells know them. */
async function runEditor(editor: string, file: string, signal: AbortSignal): Promise<void> {
  const child = spawn("sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit", signal });
  const [code, ended] = await once(child, "exit");
  if (code !== 0) throw new NodeError(`the editor ended with ${ended ?? `status ${code}`}; nothing was changed`);
}
