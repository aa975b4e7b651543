/**
 * `config edit` opens an editor in the caller's terminal. The server's `config/edit` opens one in
 * the host's terminal instead.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Presenter } from "./presenters.ts";
import { checkEnd } from "./session.ts";
import type { RpcCommand } from "./surface.ts";

/**
 * Opens the config in the editor and sends the edited text back to the server, which validates it.
 * After a failure the text stays in a file, so that no edit is lost.
 */
export function editConfig(commands: ReadonlyMap<string, RpcCommand>): Presenter {
  const named = (path: string) => {
    const command = commands.get(path);
    if (command === undefined) throw new Error(`The server has no command ${path}`);
    return { command, arguments: [], options: new Map<string, readonly string[]>(), files: [] };
  };
  return async (session) => {
    const { env, cwd } = session.context;
    const editor = env.VISUAL ?? env.EDITOR;
    if (editor === undefined || editor === "") throw new Error("There is no editor: set EDITOR to one");
    const shown = await session.send(named("config/show"));
    const before = `${JSON.stringify(JSON.parse(await text(shown.body)), null, 2)}\n`;
    const folder = await mkdtemp(join(tmpdir(), "modhost-config-"));
    const file = join(folder, "config.json");
    const isChanged = async () => (await readFile(file, "utf8")) !== before;
    let isUnsaved = false;
    try {
      await writeFile(file, before, { mode: 0o600 });
      const child = spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit", cwd, env });
      const [code, signal] = await once(child, "exit");
      if (code !== 0) throw new Error(`The editor ended with ${code ?? signal}; nothing was changed`);
      if (!(await isChanged())) return;
      const response = await session.send({ ...named("config/replace"), files: [file] });
      for await (const _ of response.body);
      checkEnd(response);
    } catch (error) {
      isUnsaved = await isChanged().catch(() => false);
      if (!isUnsaved) throw error;
      throw new Error(`${(error as Error).message}\nYour text is in ${file}`, { cause: error });
    } finally {
      if (!isUnsaved) await rm(folder, { recursive: true });
    }
  };
}
