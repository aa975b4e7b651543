/**
 * Loaded before each test file by `test/run.mjs`. Node's runner bounds the time of a test, but
 * waits without end for a process that something holds after its tests: a server, say, that was
 * never closed. Such a process ends here with 1, and says what holds it. `TEST_PROCESS_SECONDS` is
 * how long it may take in all.
 */
const limit = Number(process.env.TEST_PROCESS_SECONDS ?? 1200);

function giveUp() {
  const held = process.getActiveResourcesInfo().join(", ");
  console.error(`${process.argv[1]} did not end within ${limit} s. What holds it: ${held}`);
  process.exit(1);
}

// The runner itself loads this, too, and takes as long as all of them.
if (process.env.NODE_TEST_CONTEXT !== undefined) setTimeout(giveUp, limit * 1000).unref();
