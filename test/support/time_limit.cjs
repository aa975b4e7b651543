/**
 * Loaded before each test file by `test/run.mjs`. Node's runner limits the time of a test, but
 * waits forever for a process that stays alive after its tests, for example because of an open
 * server. This ends such a process with exit code 1 and prints its active resources.
 * `TEST_PROCESS_SECONDS` is the limit for the whole process.
 */
const limit = Number(process.env.TEST_PROCESS_SECONDS ?? 1200);

function giveUp() {
  const active = process.getActiveResourcesInfo().join(", ");
  console.error(`${process.argv[1]} did not end within ${limit} s. Active resources: ${active}`);
  process.exit(1);
}

// The runner loads this file, too, but has no limit: it runs as long as all test processes
// together.
if (process.env.NODE_TEST_CONTEXT !== undefined) setTimeout(giveUp, limit * 1000).unref();
