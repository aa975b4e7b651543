import { reasonOf } from "../util/errors.ts";
import { program } from "./program.ts";
import { hasServed } from "./serve.ts";

/** Maximum number of milliseconds that listeners to `beforeExit` may take. */
const MAX_LAST_WORK = 5000;

void run();

async function run(): Promise<void> {
  const { stdin, stdout, stderr, env } = process;
  const status = await program(process.argv.slice(2), { stdin, stdout, stderr, env, cwd: process.cwd() });
  // A service that has ended does not wait for a reader that has stopped reading.
  if (hasServed()) await lastWork(status);
  else await Promise.all([written(stdout), written(stderr)]);
  process.exit(status);
}

/**
 * Calls the listeners to `beforeExit` and waits for what they return, such as an SDK that sends its
 * last spans. Node.js does not emit this event when `process.exit` is called, and a module may have
 * left something open that keeps Node.js from ending by itself.
 */
async function lastWork(status: number): Promise<void> {
  const failed = (reason: unknown) => {
    process.stderr.write(`modhost: a listener to beforeExit failed: ${reasonOf(reason)}\n`);
  };
  const work = process.listeners("beforeExit").map((listener) => {
    return Promise.try(listener.bind(process), status).catch(failed);
  });
  if (work.length === 0) return;
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    failed(`it takes more than ${MAX_LAST_WORK / 1000} s`);
    late.resolve();
  }, MAX_LAST_WORK);
  await Promise.race([Promise.all(work), late.promise]);
  clearTimeout(timer);
}

/**
 * Waits until the stream is written, because an exit would drop the data that a pipe has not taken
 * yet.
 */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    stream.once("error", () => resolve()).once("close", () => resolve());
    stream.write("", () => resolve());
  });
}
