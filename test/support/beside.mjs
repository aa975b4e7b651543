import { spawn } from "node:child_process";
import { constants } from "node:os";

/**
 * Runs two programs of Node at the same time: the checks, whose output is shown only if they fail,
 * when the tests are stopped; and the tests, which have the terminal.
 * @param {readonly string[]} checks what Node is given
 * @param {readonly string[]} tests likewise
 * @returns {Promise<number>} the exit code: of the checks if they fail, else of the tests
 */
export async function beside(checks, tests) {
  // In a group of their own: what a script has started ends with it.
  const checking = spawn(process.execPath, checks, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const testing = spawn(process.execPath, tests, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (checking.exitCode === null && checking.signalCode === null) process.kill(-checking.pid, signal);
      testing.kill(signal);
    });
  }
  const said = [];
  for (const stream of [checking.stdout, checking.stderr]) stream.on("data", (piece) => said.push(piece));
  const [checked, tested] = await Promise.all([
    ended(checking).then((code) => {
      if (code !== 0) testing.kill("SIGTERM");
      return code;
    }),
    ended(testing),
  ]);
  if (checked === 0) return tested;
  process.stderr.write(Buffer.concat([Buffer.from("\n"), ...said]));
  return checked;
}

/** Its exit code, as a shell gives it, once nothing more comes from it. */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(signal === null ? code : 128 + constants.signals[signal]));
  });
}
