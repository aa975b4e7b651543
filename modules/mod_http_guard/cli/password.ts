import { once } from "node:events";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { type Command, type CommandContext, UsageError } from "../../../core/cli/index.ts";
import { keepPassword } from "../passwords.ts";

export const command: Command = {
  name: "password",
  help: "Hash a password for the options of http_guard",
  arguments: "[NAME]",
  about: [
    "Asks for the password without showing it, or reads the first line of the standard input. Prints the text for",
    "http_guard_users; with a name, the line NAME:TEXT for http_guard_users_file.",
  ].join("\n"),
  async run(context) {
    const [name, ...more] = context.args;
    if (more.length > 0) throw new UsageError("password takes the name of one user");
    if (name !== undefined && !/^[^\s:#][^:]*$/.test(name))
      throw new UsageError("The name of a user has no colon, and does not begin with a space or #");
    const password = await readPassword(context);
    if (password === "") throw new UsageError("The password is empty: it is the first line of the standard input");
    const stored = await keepPassword(password);
    context.stdout.write(name === undefined ? `${stored}\n` : `${name}:${stored}\n`);
    return 0;
  },
};

/** On a terminal, the typed password is not shown. */
async function readPassword({ stdin, stderr }: CommandContext): Promise<string> {
  const isTyped = stdin.isTTY === true;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: isTyped });
  if (isTyped) stderr.write("Password: ");
  let line = "";
  lines.once("line", (text) => {
    line = text;
    lines.close();
  });
  lines.once("SIGINT", () => lines.close());
  await once(lines, "close");
  if (isTyped) stderr.write("\n");
  return line;
}
