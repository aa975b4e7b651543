/**
 * Loaded before each test file by `test/run.mjs`. Node's test runner follows every promise of a
 * process, to know which test an uncaught exception comes from: a third of the CPU of tests that
 * serve requests. Here it follows everything but promises. An exception that is thrown behind one
 * still fails its file, and is told with its stack, which names the place. In exchange a `describe`
 * must not wait before it declares its tests: they would not be its own. What it needs is awaited
 * at the top of the file.
 */
const hooks = require("node:async_hooks");

const { createHook } = hooks;
// The runner asks for its hook when it is first imported, before all others.
hooks.createHook = (callbacks) => {
  hooks.createHook = createHook;
  return createHook({ ...callbacks, trackPromises: false });
};

// An import of `node:http` reads all its fields, and these make Node load its fetch client; no test
// takes them from here.
const http = require("node:http");
for (const name of ["CloseEvent", "MessageEvent", "WebSocket"]) delete http[name];

process.on("uncaughtExceptionMonitor", (error) => console.error(error));
