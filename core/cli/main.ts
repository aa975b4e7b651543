import { program } from "./program.ts";
import { hasServed } from "./serve.ts";

void run();

async function run(): Promise<void> {
  const { stdin, stdout, stderr, env } = process;
  const status = await program(process.argv.slice(2), { stdin, stdout, stderr, env, cwd: process.cwd() });
  // A service that has ended does not wait for a reader that takes nothing any more.
  if (!hasServed()) await Promise.all([written(stdout), written(stderr)]);
  process.exit(status);
}

/** An exit would drop what a pipe has not taken yet. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    stream.once("error", () => resolve()).once("close", () => resolve());
    stream.write("", () => resolve());
  });
}
