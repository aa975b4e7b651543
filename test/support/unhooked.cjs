/**
 * Loaded before each test file by `test/run.mjs`. Node's test runner tracks every promise of a
 * process, to know which test an uncaught exception belongs to. That takes a third of the CPU time
 * of tests that serve requests. With this file it tracks everything except promises. An exception
 * in a promise still fails its file, and its stack is printed. The price: a `describe` must not
 * await before it declares its tests, because they would not belong to it. Files await at their top
 * level instead.
 */
const hooks = require("node:async_hooks");

const { createHook } = hooks;
// The runner calls `createHook` when it is imported, before anything else does.
hooks.createHook = (callbacks) => {
  hooks.createHook = createHook;
  return createHook({ ...callbacks, trackPromises: false });
};

// An import of `node:http` reads all its properties, and these three make Node load its fetch
// client. No test takes them from `node:http`.
const http = require("node:http");
for (const name of ["CloseEvent", "MessageEvent", "WebSocket"]) delete http[name];

process.on("uncaughtExceptionMonitor", (error) => console.error(error));
