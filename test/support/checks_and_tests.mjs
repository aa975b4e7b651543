import { spawn } from "node:child_process";
import { constants } from "node:os";

/**
 * Runs two Node programs at the same time: the checks and the tests. The tests write to the
 * terminal. The output of the checks is shown only if they fail; the tests are then stopped.
 * @param {readonly string[]} checks arguments for Node
 * @param {readonly string[]} tests arguments for Node
 * @returns {Promise<number>} exit code of the checks if they fail, otherwise that of the tests
 */
export async function runChecksAndTests(checks, tests) {
  // The checks have a process group of their own, so that a signal reaches everything they started.
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

/** Resolves with the exit code, as a shell counts it, once the process has closed its streams. */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(signal === null ? code : 128 + constants.signals[signal]));
  });
}
