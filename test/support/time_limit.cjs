/**
 * Loaded before each test file by `test/run.mjs`. Node's runner limits the time of a test, but
 * waits forever for a process that stays alive after its tests, for example because of an open
 * server. This ends such a process, and one that takes so much memory that the whole machine would
 * stand still, with exit code 1 and a line that says what it was doing. `TEST_PROCESS_SECONDS` is
 * the limit for the whole process, and `TEST_PROCESS_MIB` for its memory.
 */
const { loadavg, freemem } = require("node:os");

const limit = Number(process.env.TEST_PROCESS_SECONDS ?? 1200);
const memory = Number(process.env.TEST_PROCESS_MIB ?? 4096);
const MIB = 2 ** 20;
/** A pause of the whole machine counts as one step: it is not the fault of the process. */
const STEPS = 120;

function giveUp(reason) {
  const active = process.getActiveResourcesInfo().join(", ");
  const { user, system } = process.cpuUsage();
  const used = `${((user + system) / 1e6).toFixed()} s of CPU, ${(process.memoryUsage.rss() / MIB).toFixed()} MiB`;
  const machine = `load ${loadavg()[0].toFixed(1)}, ${(freemem() / MIB).toFixed()} MiB free`;
  console.error(`${process.argv[1]} ${reason}. It used ${used}; ${machine}. Active resources: ${active}`);
  process.exit(1);
}

let steps = 0;
function check() {
  steps += 1;
  if (steps >= STEPS) giveUp(`did not end within ${limit} s`);
  if (process.memoryUsage.rss() > memory * MIB) giveUp(`takes more than ${memory} MiB of memory`);
}

// The runner loads this file, too, but has no limit: it runs as long as all test processes
// together.
if (process.env.NODE_TEST_CONTEXT !== undefined) setInterval(check, (limit * 1000) / STEPS).unref();
