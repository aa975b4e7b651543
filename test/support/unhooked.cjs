/**
 * Loaded before each test file by `test/run.mjs`. Node's test runner follows every promise of a process, to know which test
 * an uncaught exception comes from: a third of the CPU of tests that serve requests. Without that, such an exception still
 * fails its file; here it is told with its stack, which names the place.
 */
const hooks = require("node:async_hooks");

const { createHook } = hooks;
// The runner asks for its hook when it is first imported, before all others.
hooks.createHook = () => {
  hooks.createHook = createHook;
  const none = { enable: () => none, disable: () => none };
  return none;
};

process.on("uncaughtExceptionMonitor", (error) => console.error(error));
